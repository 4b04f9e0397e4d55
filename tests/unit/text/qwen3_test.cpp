// The real Qwen 3 tokenizer and chat template, which are not part of this tree: SANGAM_DATA names the folder
// that holds tokenizers/qwen3/. Without it these cases say that they are skipped.
#include <doctest/doctest.h>
#include <zlib.h>

#include <array>
#include <cstdio>

#include "gateway/text/chat_template.hpp"
#include "tests/unit/text/reference.hpp"

using namespace sangam;
using Json = nlohmann::ordered_json;

namespace {

std::optional<std::filesystem::path> data_folder() {
  const char* data = std::getenv("SANGAM_DATA");
  if (data == nullptr) {
    MESSAGE("skipped: SANGAM_DATA does not name a folder with tokenizers/qwen3");
    return std::nullopt;
  }
  return std::filesystem::path(data) / "tokenizers/qwen3";
}

std::string unzipped(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  SANGAM_ASSERT(file != nullptr, path);
  std::string text;
  std::array<char, 1 << 16> part{};
  for (int size = gzread(file, part.data(), part.size()); size > 0;
       size = gzread(file, part.data(), part.size())) {
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  gzclose(file);
  return text;
}

/// FNV-1a, as make_chats.py writes it.
std::string hash(std::string_view text) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(value));
  return hex.data();
}

}  // namespace

TEST_CASE("the Qwen 3 tokenizer encodes our texts as the Hugging Face library does") {
  const auto data = data_folder();
  if (!data) return;
  const auto tokenizer = reference::load_text(unzipped(*data / "tokenizer.json.gz"),
                                              reference::read(*data / "tokenizer_config.json"));
  REQUIRE_MESSAGE(tokenizer.has_value(), (tokenizer ? "" : tokenizer.error().context));
  const Json expected = Json::parse(reference::read(reference::folder("qwen3.json")));
  for (const Json& item : expected["encode"]) {
    CAPTURE(item["text"].dump());
    const auto ids = (*tokenizer)->encode(item["text"].get<std::string>(), true);
    CHECK(hash(Json(ids).dump()) == item["ids"].get<std::string>());
  }
}

TEST_CASE("the Qwen 3 template renders our conversations as the Hugging Face library does") {
  const auto data = data_folder();
  if (!data) return;
  const auto chat = ChatTemplate::load(*data);
  REQUIRE_MESSAGE(chat.has_value(), (chat ? "" : chat.error().context));
  const Json inputs = Json::parse(reference::read(reference::folder("chats.json")));
  const Json expected = Json::parse(reference::read(reference::folder("qwen3.json")));
  for (const Json& item : expected["chats"]) {
    Json options = inputs["options"][item["option"].get<std::size_t>()];
    const std::string messages = inputs["chats"][item["chat"].get<std::size_t>()].dump();
    const std::string tools = options.contains("tools") ? options["tools"].dump() : "";
    ChatInput input;
    input.add_generation_prompt = options.value("add_generation_prompt", false);
    options.erase("tools"), options.erase("add_generation_prompt");
    const std::string variables = options.dump();
    input.messages = messages;
    input.tools = tools;
    input.variables = variables;
    CAPTURE(messages);
    const auto text = chat->render(input);
    CHECK(text.has_value() == item.contains("text"));
    if (text) CHECK(hash(*text) == item["text"].get<std::string>());
  }
}
