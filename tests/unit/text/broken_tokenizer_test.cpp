// Files that are not what they should be: a clear error, never a crash.
#include <doctest/doctest.h>

#include <random>

#include "tests/unit/text/reference.hpp"

using namespace sangam;
using reference::Json;

namespace {

Json base() {
  return reference::read_json(reference::folder("qwen2") / "tokenizer.json");
}

/// What loading says about the Qwen 2 style tokenizer with one field replaced.
std::string refusal(const std::string& pointer, const Json& value) {
  Json tokenizer = base();
  tokenizer[Json::json_pointer(pointer)] = value;
  const auto loaded = reference::load_text(tokenizer.dump());
  return loaded ? "loaded" : loaded.error().context;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a folder without a tokenizer is not found, and the path is named") {
  const reference::TemporaryFolder folder;
  const auto loaded = Tokenizer::load(folder.path());
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code == ErrorCode::not_found);
  CHECK(mentions(loaded.error().context, (folder.path() / "tokenizer.json").string()));
}

TEST_CASE("a tokenizer cut anywhere is refused as corrupt") {
  const std::string text = base().dump();
  for (std::size_t size = 0; size < text.size(); size += 101) {
    const auto loaded = reference::load_text(text.substr(0, size));
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().code == ErrorCode::corrupt);
    CHECK(mentions(loaded.error().context, "tokenizer.json: not JSON at byte"));
  }
}

TEST_CASE("components that we do not know are refused by their names and places") {
  CHECK(
      mentions(refusal("/model/type", "WordPiece"), "tokenizer.json.model.type: WordPiece is not supported"));
  CHECK(mentions(refusal("/normalizer/type", "Nmt"), "normalizer.type: Nmt is not supported"));
  CHECK(mentions(refusal("/pre_tokenizer/pretokenizers/0/type", "Bert"),
                 "pre_tokenizer.pretokenizers[0].type: Bert is not supported"));
  CHECK(mentions(refusal("/decoder/type", "CTC"), "decoder.type: CTC is not supported"));
  CHECK(
      mentions(refusal("/post_processor/type", "Roberta"), "post_processor.type: Roberta is not supported"));
  CHECK(mentions(refusal("/pre_tokenizer/pretokenizers/0/behavior", "Sideways"),
                 "the behaviour Sideways is not known"));
  CHECK(mentions(refusal("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "(a"}}), "is refused at byte"));
  CHECK(mentions(refusal("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "[a&&b]"}}),
                 "an intersection of sets"));
}

TEST_CASE("fields of a wrong type, absent fields and absurd ids are refused by their places") {
  CHECK(mentions(refusal("/model/vocab", 5), "model.vocab: expected an object, found int64"));
  CHECK(mentions(refusal("/model/vocab/!", "x"), "model.vocab.!: expected a whole number"));
  CHECK(mentions(refusal("/model/vocab/!", -1), "model.vocab.!: expected a whole number"));
  CHECK(mentions(refusal("/model/vocab/!", 4294967295u), "is not below the limit"));
  CHECK(mentions(refusal("/model/merges", nullptr), "the field \"merges\" is missing"));
  CHECK(mentions(refusal("/model/merges/3", 7), "model.merges[3]: expected an array"));
  CHECK(mentions(refusal("/model/merges/3", Json::array({"a"})), "model.merges[3]: a merge has two tokens"));
  CHECK(mentions(refusal("/model/merges/3", "abc"), "is not two tokens with one blank"));
  CHECK(mentions(refusal("/model/dropout", 0.1), "dropout is for training"));
  CHECK(mentions(refusal("/model/unk_token", "nowhere"), "model.unk_token nowhere is not in model.vocab"));
  CHECK(mentions(refusal("/added_tokens/0/content", 7), "added_tokens[0].content: expected a string"));
  CHECK(mentions(refusal("/added_tokens/0/id", 1u << 30), "is not below the limit"));
}

TEST_CASE("merges that name absent tokens are refused, and the token is named") {
  CHECK(mentions(refusal("/model/merges/0", Json::array({"nowhere", "a"})),
                 "model.merges[0] needs the token nowhere"));
  CHECK(mentions(refusal("/model/merges/0", Json::array({"!", "q"})), "model.merges[0] needs the token !q"));
}

TEST_CASE("two tokens with one id, and one token with two ids, are refused") {
  CHECK(mentions(refusal("/model/vocab/!", 1), "clashes with"));
  CHECK(mentions(refusal("/added_tokens/0/id", 3), "clashes with"));
  CHECK(mentions(refusal("/added_tokens/0/content", "!"), "clashes with"));
}

TEST_CASE("a frame of tokens that do not exist is refused") {
  const Json frame = {
      {"type", "TemplateProcessing"},
      {"single", Json::array({{{"SpecialToken", {{"id", "x"}}}}, {{"Sequence", {{"id", "A"}}}}})},
      {"special_tokens", {{"x", {{"ids", {99999}}}}}}};
  CHECK(mentions(refusal("/post_processor", frame), "adds the token 99999, which does not exist"));
}

TEST_CASE("any change of any byte is loaded or refused, and what is loaded works") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string text = base().dump();
  for (int round = 0; round < 300; ++round) {
    std::string changed = text;
    // Half of the changes hit the components in front of the vocabulary.
    const std::size_t range = round % 2 == 0 ? changed.size() : changed.find("\"vocab\"");
    for (int i = 0; i < 3; ++i) changed[random() % range] = static_cast<char>(random() % 256);
    const auto loaded = reference::load_text(changed);
    if (!loaded) continue;
    const auto ids = (*loaded)->encode("Hello, <|im_start|> \u4F60\u597D 123\n", true);
    CHECK((*loaded)->decode(ids, false).size() < 1000);
  }
}
