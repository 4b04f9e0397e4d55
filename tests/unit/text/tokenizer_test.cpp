// Encoding and decoding against what the Hugging Face library said (tests/data/text/make_tokenizers.py).
#include "gateway/text/tokenizer.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "tests/unit/text/reference.hpp"

using namespace sangam;
using reference::Json;

namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& name) {
  return Tokenizer::load(reference::folder(name)).value();
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// By value: a range-based for keeps it alive.
Json cases_of(const std::string& tokenizer, const std::string& kind) {
  return reference::read_json(reference::folder(tokenizer) / "cases.json").at(kind);
}

const std::vector<std::string> kFamilies{"llama3", "qwen2", "tekken", "llama2", "mistral", "gpt2"};

/// The base of the component cases with `patch` ("key" or "key.inner" to value) applied.
std::string patched(Json tokenizer, const Json& patch) {
  for (const auto& [key, value] : patch.items()) {
    const auto dot = key.find('.');
    if (dot == std::string::npos) {
      tokenizer[key] = value;
    } else {
      tokenizer[key.substr(0, dot)][key.substr(dot + 1)] = value;
    }
  }
  return tokenizer.dump();
}

}  // namespace

TEST_CASE("each family of tokenizers encodes as the Hugging Face library does") {
  for (const std::string& name : kFamilies) {
    const auto tokenizer = tokenizer_of(name);
    for (const Json& item : cases_of(name, "encode")) {
      CAPTURE(name);
      CAPTURE(item["text"].dump());
      CHECK(tokenizer->encode(item["text"].get<std::string>(), false) == reference::ids(item["ids"]));
      CHECK(tokenizer->encode(item["text"].get<std::string>(), true) == reference::ids(item["framed"]));
    }
  }
}

TEST_CASE("ill-formed UTF-8 is encoded as Python's replacement of it") {
  for (const std::string& name : kFamilies) {
    const auto tokenizer = tokenizer_of(name);
    for (const Json& item : cases_of(name, "broken")) {
      CAPTURE(name);
      CAPTURE(item["hex"]);
      CHECK(tokenizer->encode(from_hex(item["hex"]), false) == reference::ids(item["ids"]));
    }
  }
}

TEST_CASE("each family of tokenizers decodes as the Hugging Face library does") {
  for (const std::string& name : kFamilies) {
    const auto tokenizer = tokenizer_of(name);
    for (const Json& item : cases_of(name, "decode")) {
      CAPTURE(name);
      CAPTURE(item["ids"].dump());
      CHECK(tokenizer->decode(reference::ids(item["ids"]), false) == item["text"].get<std::string>());
      CHECK(tokenizer->decode(reference::ids(item["ids"]), true) == item["plain"].get<std::string>());
    }
  }
}

TEST_CASE("each normalizer, pre-tokenizer and decoder does what the Hugging Face library's does") {
  const Json base = reference::read_json(reference::folder("components") / "tokenizer.json");
  const Json cases = reference::read_json(reference::folder("components") / "cases.json");
  for (const Json& component : cases["patches"]) {
    CAPTURE(component["name"]);
    const auto tokenizer = reference::load_text(patched(base, component["patch"]));
    REQUIRE_MESSAGE(tokenizer.has_value(), (tokenizer ? "" : tokenizer.error().context));
    for (std::size_t i = 0; i < cases["texts"].size(); ++i) {
      CAPTURE(cases["texts"][i].dump());
      CHECK((*tokenizer)->encode(cases["texts"][i].get<std::string>(), false) ==
            reference::ids(component["ids"][i]));
    }
    for (const Json& item : component["decode"]) {
      CAPTURE(item["ids"].dump());
      CHECK((*tokenizer)->decode(reference::ids(item["ids"]), false) == item["text"].get<std::string>());
      CHECK((*tokenizer)->decode(reference::ids(item["ids"]), true) == item["plain"].get<std::string>());
    }
  }
}

TEST_CASE("the roles of tokens come from the configuration, as texts or as objects") {
  const auto llama = tokenizer_of("llama3");
  CHECK(llama->bos() == llama->find("<|begin_of_text|>"));
  CHECK(llama->eos() == llama->find("<|eot_id|>"));
  CHECK(llama->eos().has_value());
  CHECK_FALSE(llama->pad().has_value());
  CHECK(llama->is_special(*llama->bos()));
  CHECK_FALSE(llama->is_special(0));
  CHECK_FALSE(llama->is_special(1u << 30));

  const auto qwen = tokenizer_of("qwen2");
  CHECK_FALSE(qwen->bos().has_value());
  CHECK(qwen->spelling_of(*qwen->pad()) == "<|endoftext|>");
  CHECK_FALSE(qwen->is_special(*qwen->find("<think>")));
}

TEST_CASE("a token's bytes are exact, also where they are part of a character") {
  const auto qwen = tokenizer_of("qwen2");
  std::string bytes;
  for (const TokenId id : qwen->encode("\U0001F004 \u20AC", false)) bytes += qwen->bytes_of(id);
  CHECK(bytes == "\U0001F004 \u20AC");
  CHECK(qwen->bytes_of(*qwen->find("\u0120")) == " ");
  CHECK(qwen->bytes_of(*qwen->find("<|im_end|>")) == "<|im_end|>");
  CHECK(qwen->bytes_of(1u << 30).empty());

  const auto llama = tokenizer_of("llama2");
  CHECK(llama->bytes_of(*llama->find("<0xE2>")) == "\xE2");
  CHECK(llama->bytes_of(*llama->find("\u2581")) == " ");
}

TEST_CASE("many threads may encode with one tokenizer") {
  const auto tokenizer = tokenizer_of("qwen2");
  const Json cases = cases_of("qwen2", "encode");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (const Json& item : cases) {
        count += tokenizer->encode(item["text"].get<std::string>(), false) != reference::ids(item["ids"]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}
