// Tokens to text: splits of stop strings and of code points, and logprobs beside them.
#include "gateway/core/choice_text.hpp"

#include <doctest/doctest.h>

#include "tests/unit/gateway/word_text.hpp"

using namespace sangam;

namespace {

ClientCall call_with(std::shared_ptr<const ModelText> text, std::vector<std::string> stop) {
  ClientCall call;
  call.text = std::move(text);
  call.stop = std::move(stop);
  return call;
}

struct Streamed {
  std::string text;
  std::vector<std::string> deltas;
  std::vector<TokenPiece> pieces;
  bool stopped = false;
  std::size_t used = 0;
};

Streamed run(const ClientCall& call, const std::vector<TokenId>& tokens, bool logprobs = false) {
  ChoiceText choice(call);
  Streamed all;
  const auto take = [&](const ChoiceText::Released& released) {
    all.text += released.text;
    all.deltas.push_back(released.text);
    all.pieces.insert(all.pieces.end(), released.pieces.begin(), released.pieces.end());
    all.stopped |= released.stopped;
  };
  for (const TokenId token : tokens) {
    const PositionLogprobs scores{{token, -0.5}, {{token, -0.5}, {0, -2.0}}};
    take(choice.push(token, logprobs ? &scores : nullptr));
    ++all.used;
    if (all.stopped) break;
  }
  take(choice.finish());
  return all;
}

/// All ways to cut `text` into pieces, each of which becomes a token.
std::vector<std::vector<std::string>> all_splits(const std::string& text) {
  std::vector<std::vector<std::string>> splits;
  for (unsigned cuts = 0; cuts < (1u << (text.size() - 1)); ++cuts) {
    std::vector<std::string> words{std::string(1, text[0])};
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (cuts >> (i - 1) & 1) words.emplace_back();
      words.back() += text[i];
    }
    splits.push_back(std::move(words));
  }
  return splits;
}

std::vector<TokenId> counting(std::size_t size) {
  std::vector<TokenId> tokens(size);
  for (std::size_t i = 0; i < size; ++i) tokens[i] = TokenId(i);
  return tokens;
}

}  // namespace

TEST_CASE("however a stop is split over tokens, the text ends before it and nothing of it leaks") {
  for (const auto& words : all_splits("ab<end>cd")) {
    const Streamed out = run(call_with(std::make_shared<testing::WordText>(words), {"<end>", "never"}),
                             counting(words.size()));
    CHECK(out.text == "ab");
    CHECK(out.stopped);
  }
}

TEST_CASE("a beginning of a stop is held back, and released when it turns out to be none") {
  const Streamed out = run(call_with(testing::byte_text(), {"<end>"}), {'a', '<', 'e', 'x', 'b'});
  CHECK(out.deltas == std::vector<std::string>{"a", "", "", "<ex", "b", ""});
  CHECK_FALSE(out.stopped);
}

TEST_CASE("a beginning of a stop at the end of the tokens is released") {
  const Streamed out = run(call_with(testing::byte_text(), {"<end>"}), {'a', '<', 'e', 'n'});
  CHECK(out.text == "a<en");
  CHECK_FALSE(out.stopped);
}

TEST_CASE("a stop within one token cuts the token") {
  const auto text = std::make_shared<testing::WordText>(std::vector<std::string>{"one\n\ntwo"});
  CHECK(run(call_with(text, {"\n\n"}), {0}).text == "one");
}

TEST_CASE("code points that tokens split come out whole, however they are split") {
  for (const auto& words : all_splits("h\xC3\xA9\xF0\x9F\x98\x80!")) {
    const Streamed out =
        run(call_with(std::make_shared<testing::WordText>(words), {}), counting(words.size()));
    CHECK(out.text == "h\xC3\xA9\xF0\x9F\x98\x80!");
    for (const std::string& delta : out.deltas) {
      if (!delta.empty()) CHECK((static_cast<unsigned char>(delta.front()) & 0xC0) != 0x80);
    }
  }
}

TEST_CASE("stops do not count before min_tokens") {
  ClientCall call = call_with(testing::byte_text(), {"x"});
  call.sampling.min_tokens = Tokens{2};
  CHECK(run(call, {'x', 'x', 'a', 'x', 'b'}).text == "xxa");
}

TEST_CASE("every token has its exact bytes, and goes with the text that begins in it") {
  const auto text =
      std::make_shared<testing::WordText>(std::vector<std::string>{"a", "\xF0\x9F", "\x98\x80", "b"});
  ChoiceText choice(call_with(text, {}));
  const auto push = [&](TokenId token) {
    const PositionLogprobs scores{{token, -0.25}, {}};
    return choice.push(token, &scores);
  };
  CHECK(push(0).pieces.size() == 1);
  CHECK(push(1).pieces.empty());  // No text yet.
  const auto emoji = push(2);
  REQUIRE(emoji.pieces.size() == 2);
  CHECK(emoji.pieces[0].bytes == "\xF0\x9F");
  CHECK(emoji.pieces[1].bytes == "\x98\x80");
  const auto last = push(3);
  REQUIRE(last.pieces.size() == 1);
  CHECK(last.pieces[0].text_offset == 2);  // Code points, not bytes.
}

TEST_CASE("tokens that a stop cuts away have no logprobs, and those before it have") {
  const Streamed out = run(call_with(testing::byte_text(), {"<e>"}), {'a', 'b', '<', 'e', '>', 'c'}, true);
  CHECK(out.text == "ab");
  CHECK(out.used == 5);
  REQUIRE(out.pieces.size() == 2);
  CHECK(out.pieces[1].bytes == "b");
  CHECK(out.pieces[1].top.size() == 2);
}
