// Chat templates against what the Hugging Face library renders (tests/data/text/make_chats.py).
#include "gateway/text/chat_template.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/unit/text/reference.hpp"

using namespace sangam;
// Ordered: a template sees the order of a JSON object's keys.
using Json = nlohmann::ordered_json;

namespace {

Json reference_data() {
  return Json::parse(reference::read(reference::folder("chats.json")));
}

/// 2024-07-06 15:04:05, a Saturday: what make_chats.py takes for now.
std::tm reference_time() {
  std::tm time{};
  time.tm_year = 124, time.tm_mon = 6, time.tm_mday = 6, time.tm_wday = 6, time.tm_yday = 187;
  time.tm_hour = 15, time.tm_min = 4, time.tm_sec = 5;
  return time;
}

/// The options that are not variables go where ChatInput has them.
Result<std::string> render(const std::string& source, const Json& messages, Json options) {
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, "test");
  if (!chat) return chat.error();
  const std::string message_text = messages.dump();
  const std::string tools = options.contains("tools") ? options["tools"].dump() : "";
  ChatInput input;
  input.messages = message_text;
  input.tools = tools;
  input.add_generation_prompt = options.value("add_generation_prompt", false);
  input.special_tokens = {{"bos_token", "<bos>"}, {"eos_token", "<eos>"}};
  input.local_time = reference_time();
  options.erase("tools"), options.erase("add_generation_prompt");
  const std::string variables = options.dump();
  input.variables = variables;
  return chat->render(input);
}

std::string said(const Result<std::string>& result) {
  return result ? *result : "error: " + result.error().context;
}

}  // namespace

TEST_CASE("conversations are rendered as the Hugging Face library renders them") {
  const Json data = reference_data();
  for (const Json& item : data["conversations"]) {
    CAPTURE(item["template"]);
    CAPTURE(data["chats"][item["chat"].get<std::size_t>()].dump());
    CAPTURE(item["option"]);
    const auto result = render(data["templates"][item["template"].get<std::string>()],
                               data["chats"][item["chat"].get<std::size_t>()],
                               data["options"][item["option"].get<std::size_t>()]);
    if (item.contains("text")) {
      CHECK(said(result) == item["text"].get<std::string>());
    } else {
      CHECK_MESSAGE(!result.has_value(), said(result));
    }
  }
}

TEST_CASE("each construct of the language does what Jinja does") {
  const Json data = reference_data();
  for (const Json& item : data["snippets"]) {
    const auto source = item["source"].get<std::string>();
    CAPTURE(source);
    const auto result = render(source, Json::array(), data["variables"]);
    if (item.contains("text")) {
      CHECK(said(result) == item["text"].get<std::string>());
    } else {
      CHECK_MESSAGE(!result.has_value(), said(result));
    }
  }
}

TEST_CASE("an error names the template, the line and what is wrong") {
  const auto exception =
      render("a\nb\n{{ raise_exception('roles must take turns') }}", Json::array(), Json::object());
  REQUIRE_FALSE(exception.has_value());
  CHECK(exception.error().code == ErrorCode::invalid_input);
  CHECK(exception.error().context == "test:3: roles must take turns");

  const auto missing = render("{% for m in messages %}\n{{ m.role.upper() }}{% endfor %}",
                              Json::parse("[{}]"), Json::object());
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().context == "test:2: 'dict object' has no attribute 'role'");

  const auto syntax = render("x\n{{ 'a' | nope }}", Json::array(), Json::object());
  REQUIRE_FALSE(syntax.has_value());
  CHECK(syntax.error().code == ErrorCode::corrupt);
  CHECK(syntax.error().context == "test:2: No filter named 'nope'.");
}

TEST_CASE("messages that are not JSON, or nest too deep, are refused") {
  const auto chat = ChatTemplate::parse("{{ messages }}", "test");
  ChatInput input;
  input.messages = "[{]";
  CHECK(chat->render(input).error().code == ErrorCode::invalid_input);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  input.messages = deep;
  CHECK(chat->render(input).error().code == ErrorCode::invalid_input);
  input.messages = "[]";
  input.variables = "[1]";
  CHECK(chat->render(input).error().code == ErrorCode::invalid_input);
}

TEST_CASE("a template that does not end, nests without bound or writes without bound is stopped") {
  const std::set<std::string> sources{
      "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
      "{% for i in range(9999) %}{{ 'x' * 100000 }}{% endfor %}",
      "{{ 'x' * 1000000000000 }}",
      "{{ [0] * 9223372036854775807 }}",
      "{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}",
      "{{ " + std::string(100'000, '-') + "1 }}",
      "{{ x" + std::string(100'000, '.') + "a }}",
  };
  for (const std::string& source : sources) {
    CAPTURE(source.substr(0, 100));
    CHECK_FALSE(render(source, Json::array(), Json::object()).has_value());
  }
  std::string chain = "{{ x";
  std::string blocks;
  for (int i = 0; i < 50'000; ++i) chain += ".a", blocks += "{% if 1 %}";
  CHECK_FALSE(render(chain + " }}", Json::array(), Json::object()).has_value());
  CHECK_FALSE(render(blocks, Json::array(), Json::object()).has_value());
}

TEST_CASE("a folder's template is found in either file, and tools choose the one for tools") {
  const reference::TemporaryFolder folder;
  CHECK(ChatTemplate::load(folder.path()).error().code == ErrorCode::not_found);

  reference::write(
      folder.path() / "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]})");
  const auto named = ChatTemplate::load(folder.path());
  ChatInput input;
  CHECK(named->render(input).value() == "plain");
  input.tools = "[]";
  CHECK(named->render(input).value() == "tools");

  reference::write(folder.path() / "tokenizer_config.json",
                   R"({"chat_template": "{{ messages | length }}"})");
  input.messages = "[1, 2]";
  CHECK(ChatTemplate::load(folder.path())->render(input).value() == "2");

  reference::write(folder.path() / "chat_template.jinja", "own file");
  CHECK(ChatTemplate::load(folder.path())->render(input).value() == "own file");

  std::filesystem::remove(folder.path() / "chat_template.jinja");
  reference::write(folder.path() / "tokenizer_config.json", R"({"chat_template": )");
  CHECK(ChatTemplate::load(folder.path()).error().code == ErrorCode::corrupt);
  reference::write(folder.path() / "tokenizer_config.json", R"({"chat_template": 5})");
  CHECK(ChatTemplate::load(folder.path()).error().code == ErrorCode::corrupt);
}

TEST_CASE("a template cut anywhere is rendered or refused") {
  const Json data = reference_data();
  for (const auto& [name, source] : data["templates"].items()) {
    const auto text = source.get<std::string>();
    for (std::size_t size = 0; size < text.size(); size += 7) {
      const auto chat = ChatTemplate::parse(text.substr(0, size), name);
      if (!chat) CHECK(chat.error().context.starts_with(name + ":"));
    }
  }
}
