// What surrounds a template: its files, its variables, and its errors.
#include "gateway/text/chat_template.hpp"

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/json_value.hpp"
#include "gateway/text/jinja/parser.hpp"
#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/jinja/renderer.hpp"
#include "gateway/text/jinja/syntax_error.hpp"
#include "gateway/text/tokenizer/json_place.hpp"

namespace sangam {

struct ChatTemplate::Parsed {
  jinja::Block block;
  std::string location;
};

namespace {

using jinja::Value;

Value raise_exception(const jinja::CallArguments& arguments) {
  throw jinja::TemplateError(
      to_text(jinja::Parameters("raise_exception", arguments, {"message"}).at("message")));
}

Value format_time(const std::tm& time, const jinja::CallArguments& arguments) {
  constexpr std::size_t kSizeLimit = 1024;
  const std::string format = jinja::Parameters("strftime_now", arguments, {"format"}).text("format");
  if (format.empty()) return "";
  std::string text(kSizeLimit, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &time));
  return text;
}

Value json_or_none(std::string_view text, const char* name) {
  return text.empty() ? Value() : jinja::value_of_json(text, name);
}

std::shared_ptr<jinja::Scope> globals_of(const ChatInput& input) {
  auto globals = std::make_shared<jinja::Scope>(nullptr);
  jinja::add_builtins(*globals);
  globals->set("raise_exception", Value::callable("raise_exception", raise_exception));
  globals->set("strftime_now",
               Value::callable("strftime_now", [time = input.local_time](const auto& arguments) {
                 return format_time(time, arguments);
               }));
  for (const auto& [name, text] : input.special_tokens) globals->set(name, Value(text));
  const Value variables = json_or_none(input.variables, "variables");
  if (!variables.is<jinja::None>() && variables.dict() == nullptr)
    throw jinja::TemplateError("variables: not a JSON object");
  if (variables.dict() != nullptr) {
    for (const auto& [name, value] : variables.dict()->entries) globals->set(*name.text(), value);
  }
  globals->set("messages", json_or_none(input.messages, "messages"));
  globals->set("tools", json_or_none(input.tools, "tools"));
  globals->set("documents", json_or_none(input.documents, "documents"));
  globals->set("add_generation_prompt", input.add_generation_prompt);
  return globals;
}

std::string place(const std::string& location, int line) {
  return location + ":" + std::to_string(line) + ": ";
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

struct Sources {
  std::optional<std::string> chat;
  std::optional<std::string> tool_use;
};

Sources read_sources(const text::JsonPlace& config) {
  const auto place = config.find("chat_template");
  if (!place) return {};
  if (place->is_string()) return {place->string(), std::nullopt};
  Sources sources;
  for (const text::JsonPlace& item : place->items()) {
    const std::string name = item.at("name").string();
    if (name == "default") sources.chat = item.at("template").string();
    if (name == "tool_use") sources.tool_use = item.at("template").string();
  }
  return sources;
}

Result<Sources> sources_of(const std::filesystem::path& folder) {
  if (auto text = read_file(folder / "chat_template.jinja")) return Sources{*std::move(text), std::nullopt};
  const auto path = folder / "tokenizer_config.json";
  const auto text = read_file(path);
  if (!text) return Sources{};
  try {
    const boost::json::value config = text::parse_json(*text, path.string());
    return read_sources(text::JsonPlace(config, path.string()));
  } catch (const text::Malformed& malformed) {
    return make_error(ErrorCode::corrupt, malformed.what());
  }
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string location) {
  try {
    jinja::Block block = jinja::parse_template(source);
    return ChatTemplate(std::make_shared<const Parsed>(Parsed{std::move(block), std::move(location)}));
  } catch (const jinja::TemplateSyntaxError& error) {
    return make_error(ErrorCode::corrupt, place(location, error.line) + error.what());
  }
}

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& folder) {
  Result<Sources> sources = sources_of(folder);
  if (!sources) return sources.error();
  if (!sources->chat) {
    return make_error(ErrorCode::not_found, folder.string() +
                                                " has no chat template: neither chat_template.jinja nor "
                                                "chat_template in tokenizer_config.json");
  }
  const std::string location = (folder / "chat_template").string();
  Result<ChatTemplate> chat = parse(*sources->chat, location);
  if (!chat || !sources->tool_use) return chat;
  const Result<ChatTemplate> tool_use = parse(*sources->tool_use, location + "(tool_use)");
  if (!tool_use) return tool_use.error();
  chat->tool_use_ = tool_use->chat_;
  return chat;
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  const Parsed& parsed = tool_use_ != nullptr && !input.tools.empty() ? *tool_use_ : *chat_;
  std::optional<jinja::Renderer> renderer;
  try {
    renderer.emplace(globals_of(input));
    return renderer->render(parsed.block);
  } catch (const jinja::TemplateError& error) {
    const std::string where = renderer ? place(parsed.location, renderer->line()) : parsed.location + ": ";
    return make_error(ErrorCode::invalid_input, where + error.what());
  }
}

}  // namespace sangam
