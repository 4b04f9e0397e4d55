// Tokenizer and ChatTemplate as a ModelText.
#include "gateway/models/hf_text.hpp"

#include <chrono>
#include <optional>

#include "gateway/text/chat_template.hpp"
#include "gateway/text/tokenizer.hpp"

namespace sangam {
namespace {

class HfStream final : public TokenStream {
 public:
  HfStream(const Tokenizer& tokenizer, bool skip_special) : detokenizer_(tokenizer, skip_special) {}
  [[nodiscard]] std::string push(TokenId token) override { return detokenizer_.push(token); }
  [[nodiscard]] std::string finish() override { return detokenizer_.finish(); }

 private:
  Detokenizer detokenizer_;
};

/// Some templates write the date; they get this host's.
std::tm local_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  ::localtime_r(&now, &local);
  return local;
}

class HfText final : public ModelText {
 public:
  HfText(std::unique_ptr<Tokenizer> tokenizer, std::optional<ChatTemplate> chat)
      : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const override {
    return tokenizer_->encode(text, add_special_tokens);
  }
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens, bool skip_special) const override {
    return tokenizer_->decode(tokens, skip_special);
  }
  [[nodiscard]] std::string bytes_of(TokenId token) const override { return tokenizer_->bytes_of(token); }
  [[nodiscard]] TokenId vocabulary_size() const override { return TokenId(tokenizer_->size()); }
  [[nodiscard]] std::unique_ptr<TokenStream> stream(bool skip_special) const override {
    return std::make_unique<HfStream>(*tokenizer_, skip_special);
  }

  [[nodiscard]] Result<std::string> render(const ChatTurns& turns) const override {
    if (!chat_) {
      return make_error(
          ErrorCode::invalid_input,
          "This model has no chat template; use /v1/completions, or add one to its tokenizer_config.json.");
    }
    ChatInput input{.messages = turns.messages,
                    .tools = turns.tools,
                    .documents = {},
                    .variables = turns.template_args,
                    .add_generation_prompt = turns.add_generation_prompt,
                    .special_tokens = {},
                    .local_time = local_time()};
    for (const Tokenizer::RoleToken& token : tokenizer_->roles())
      input.special_tokens.emplace_back(token.role, token.text);
    return chat_->render(input);
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_;
};

}  // namespace

Result<std::shared_ptr<const ModelText>> load_model_text(const std::filesystem::path& folder) {
  auto tokenizer = Tokenizer::load(folder);
  if (!tokenizer) return tokenizer.error();
  auto chat = ChatTemplate::load(folder);
  if (!chat && chat.error().code != ErrorCode::not_found) return chat.error();
  std::optional<ChatTemplate> found;
  if (chat) found = std::move(*chat);
  return std::shared_ptr<const ModelText>(std::make_shared<HfText>(std::move(*tokenizer), std::move(found)));
}

}  // namespace sangam
