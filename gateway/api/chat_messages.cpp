// Normalises chat messages.
#include "gateway/api/chat_messages.hpp"

#include <boost/json/parse.hpp>
#include <string>

#include "gateway/api/body_fields.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

/// The text of one part of a content list.
ApiResult<std::string> text_of_part(const json::value& part, const std::string& path) {
  if (part.is_string()) return std::string(part.get_string());
  if (!part.is_object()) return invalid(path, "Invalid '" + path + "': expected an object with a type.");
  BodyFields fields(part.get_object(), path + ".");
  const std::string type = fields.text("type").value_or("");
  if (type != "text" && type != "input_text" && type != "refusal") {
    return invalid(path + ".type", "Invalid '" + path + ".type': '" + type +
                                       "' is not supported; the models here read text only.");
  }
  const auto text = fields.text(type == "refusal" ? "refusal" : "text");
  if (fields.fault()) return *fields.fault();
  if (!text)
    return invalid(path + ".text", "Invalid '" + path + "': a part of type '" + type + "' needs its text.");
  return *text;
}

ApiResult<json::value> normal_content(const json::value& content, const std::string& path) {
  if (content.is_string()) return content;
  if (!content.is_array()) {
    return invalid(path, "Invalid '" + path + "': expected a string or a list of text parts.");
  }
  std::string joined;
  const json::array& parts = content.get_array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto text = text_of_part(parts[i], path + "[" + std::to_string(i) + "]");
    if (!text) return text.error();
    if (i > 0) joined += '\n';
    joined += *text;
  }
  return json::value(joined);
}

/// Clients send arguments as JSON text; templates iterate over them.
void open_arguments(json::object& message) {
  json::value* calls = message.if_contains("tool_calls");
  if (calls == nullptr || !calls->is_array()) return;
  for (json::value& call : calls->get_array()) {
    json::value* function = call.is_object() ? call.get_object().if_contains("function") : nullptr;
    json::value* text =
        function && function->is_object() ? function->get_object().if_contains("arguments") : nullptr;
    if (text == nullptr || !text->is_string()) continue;
    json::error_code error;
    json::value arguments = json::parse(text->get_string(), error);
    if (!error && arguments.is_object()) *text = std::move(arguments);
  }
}

ApiResult<json::object> normal_message(const json::value& given, const std::string& path) {
  if (!given.is_object())
    return invalid(path, "Invalid '" + path + "': expected an object with role and content.");
  json::object message = given.get_object();
  BodyFields fields(given.get_object(), path + ".");
  std::string role = fields.text("role").value_or("");
  if (fields.fault()) return *fields.fault();
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant" && role != "tool" && role != "function") {
    return invalid(path + ".role", "Invalid '" + path + ".role': '" + role +
                                       "'; expected system, developer, user, assistant or tool.");
  }
  message["role"] = role;
  if (const json::value* content = fields.find("content")) {
    auto normal = normal_content(*content, path + ".content");
    if (!normal) return normal.error();
    message["content"] = std::move(*normal);
  } else if (role == "assistant") {
    message["content"] = nullptr;
  } else {
    return invalid(path + ".content",
                   "Invalid '" + path + ".content': a message of role '" + role + "' needs content.");
  }
  open_arguments(message);
  return message;
}

}  // namespace

ApiResult<json::array> normal_messages(const json::array& messages) {
  if (messages.empty()) return invalid("messages", "Invalid 'messages': at least one message is needed.");
  json::array normal;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto message = normal_message(messages[i], "messages[" + std::to_string(i) + "]");
    if (!message) return message.error();
    normal.push_back(std::move(*message));
  }
  return normal;
}

}  // namespace sangam
