// Chat templates: from a conversation to the text of a prompt, as Hugging Face's apply_chat_template does it.
#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam {

/// What a template sees. JSON comes as text; empty text is None, as where the caller gave nothing.
struct ChatInput {
  std::string_view messages;   ///< JSON array.
  std::string_view tools;      ///< JSON array.
  std::string_view documents;  ///< JSON array.
  std::string_view variables;  ///< JSON object: further variables, which win over the special tokens.
  bool add_generation_prompt = false;
  std::vector<std::pair<std::string, std::string>> special_tokens;  ///< "bos_token" to its text, and so on.
  std::tm local_time{};                                             ///< For strftime_now.
};

/// A Jinja template, parsed once. Immutable: may render in many threads at once.
class ChatTemplate {
 public:
  /// `location` names the template in errors, which also name the line.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source, std::string location);

  /// The template of a model folder: `chat_template.jinja`, or `chat_template` in `tokenizer_config.json`,
  /// where several may be named; then requests with tools take the one for tool use. ErrorCode::not_found
  /// where the folder has none.
  [[nodiscard]] static Result<ChatTemplate> load(const std::filesystem::path& folder);

  /// An input that the template refuses or that is not JSON is ErrorCode::invalid_input.
  [[nodiscard]] Result<std::string> render(const ChatInput& input) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> chat) : chat_(std::move(chat)) {}

  std::shared_ptr<const Parsed> chat_;
  std::shared_ptr<const Parsed> tool_use_;  ///< Null where one template is for all.
};

}  // namespace sangam
