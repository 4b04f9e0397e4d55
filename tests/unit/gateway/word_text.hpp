// A ModelText for tests with a vocabulary of our choice: token i is the i-th word. Words may be parts of
// code points.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/api/model_text.hpp"

namespace sangam::testing {

class WordText final : public ModelText {
 public:
  explicit WordText(std::vector<std::string> words) : words_(std::move(words)) {}

  /// Greedy: at each place the longest word that fits; bytes without a word are left out.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, bool) const override {
    std::vector<TokenId> tokens;
    while (!text.empty()) {
      std::size_t best = 0;
      TokenId token = 0;
      for (TokenId i = 0; i < words_.size(); ++i) {
        if (words_[i].size() > best && text.starts_with(words_[i])) best = words_[i].size(), token = i;
      }
      if (best > 0) tokens.push_back(token);
      text.remove_prefix(best > 0 ? best : 1);
    }
    return tokens;
  }
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens, bool) const override {
    std::string text;
    for (const TokenId token : tokens) text += words_.at(token);
    return text;
  }
  [[nodiscard]] std::string bytes_of(TokenId token) const override { return words_.at(token); }
  [[nodiscard]] TokenId vocabulary_size() const override { return TokenId(words_.size()); }
  /// The template of these tests: the messages' JSON itself.
  [[nodiscard]] Result<std::string> render(const ChatTurns& turns) const override { return turns.messages; }
  [[nodiscard]] std::unique_ptr<TokenStream> stream(bool) const override {
    return std::make_unique<Stream>(words_);
  }

 private:
  class Stream final : public TokenStream {
   public:
    explicit Stream(const std::vector<std::string>& words) : words_(words) {}
    [[nodiscard]] std::string push(TokenId token) override {
      pending_ += words_.at(token);
      std::size_t whole = pending_.size();
      for (std::size_t back = 1; back <= 3 && back <= pending_.size(); ++back) {
        const auto byte = static_cast<unsigned char>(pending_[pending_.size() - back]);
        const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        if (byte >= 0xC0 && size > back) whole = pending_.size() - back;
        if (byte >= 0xC0 || byte < 0x80) break;
      }
      std::string text = pending_.substr(0, whole);
      pending_.erase(0, whole);
      return text;
    }
    [[nodiscard]] std::string finish() override { return pending_.empty() ? "" : "\xEF\xBF\xBD"; }

   private:
    const std::vector<std::string>& words_;
    std::string pending_;
  };
  std::vector<std::string> words_;
};

/// Every byte is a token.
[[nodiscard]] inline std::shared_ptr<const ModelText> byte_text() {
  std::vector<std::string> words;
  for (int byte = 0; byte < 256; ++byte) words.emplace_back(1, char(byte));
  return std::make_shared<WordText>(std::move(words));
}

}  // namespace sangam::testing
