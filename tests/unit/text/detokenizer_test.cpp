// Streams of tokens: no character is broken, and nothing is lost or said twice.
#include <doctest/doctest.h>

#include <random>

#include "gateway/text/unicode.hpp"
#include "tests/unit/text/reference.hpp"

using namespace sangam;

namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& name) {
  return Tokenizer::load(reference::folder(name)).value();
}

std::vector<TokenId> tokens_of(const Tokenizer& tokenizer, const std::vector<std::string>& spellings) {
  std::vector<TokenId> ids;
  for (const auto& spelling : spellings) ids.push_back(tokenizer.find(spelling).value());
  return ids;
}

}  // namespace

TEST_CASE("a stream equals decoding the whole, and each part of it is well-formed") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const std::string name : {"llama3", "qwen2", "tekken", "llama2", "mistral", "gpt2"}) {
    const auto tokenizer = tokenizer_of(name);
    std::uniform_int_distribution<TokenId> any(0, static_cast<TokenId>(tokenizer->size() + 2));
    for (int round = 0; round < 300; ++round) {
      std::vector<TokenId> ids(random() % 30);
      for (TokenId& id : ids) id = round % 2 == 0 ? any(random) : any(random) % 256;
      const bool skip = round % 3 == 0;
      Detokenizer stream(*tokenizer, skip);
      std::string text;
      for (const TokenId id : ids) {
        const std::string part = stream.push(id);
        CHECK(text::is_well_formed(part));
        text += part;
      }
      text += stream.finish();
      CAPTURE(name);
      CHECK(text == tokenizer->decode(ids, skip));
    }
  }
}

TEST_CASE("a character is held back until its last byte, and no longer") {
  const auto tokenizer = tokenizer_of("llama2");
  const auto ids = tokens_of(*tokenizer, {"<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0x41>"});
  Detokenizer stream(*tokenizer, true);
  CHECK(stream.push(ids[0]).empty());
  CHECK(stream.push(ids[1]).empty());
  CHECK(stream.push(ids[2]).empty());
  CHECK(stream.push(ids[3]) == "\U0001F600");
  CHECK(stream.push(ids[4]) == "A");
  CHECK(stream.finish().empty());
}

TEST_CASE("an unfinished character becomes U+FFFD at the end: one a byte with byte tokens, else one") {
  const auto llama = tokenizer_of("llama2");
  CHECK(llama->decode(tokens_of(*llama, {"<0xE2>", "<0x82>"}), false) == "\uFFFD\uFFFD");
  // The whole character before it stays: it may have been sent already.
  CHECK(llama->decode(tokens_of(*llama, {"<0xC3>", "<0xA9>", "<0xE2>"}), false) == "\u00E9\uFFFD");
  const auto qwen = tokenizer_of("qwen2");
  CHECK(qwen->decode(tokens_of(*qwen, {"\u00E2", "\u0124"}), false) == "\uFFFD");
}

TEST_CASE("the blank that the encoder put before the first word is not said") {
  const auto tokenizer = tokenizer_of("llama2");
  CHECK(tokenizer->decode(tokenizer->encode("hello there", false), true) == "hello there");
  CHECK(tokenizer->decode(tokenizer->encode("  two", false), true) == "  two");
  Detokenizer stream(*tokenizer, true);
  CHECK(stream.push(*tokenizer->find("\u2581")).empty());
  CHECK(stream.push(*tokenizer->find("\u2581")) == " ");
}
