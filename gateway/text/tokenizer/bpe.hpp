// Byte-pair encoding: a word becomes letters, and the earliest-learned pair merges until none is left.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/text/tokenizer/merge_table.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam::text {

/// The model part of `tokenizer.json`.
struct BpeModel {
  std::vector<std::pair<std::string, TokenId>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  ///< The earliest first.
  std::optional<std::string> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;  ///< Characters without a token become `<0xNN>` tokens.
  bool ignore_merges = false;  ///< A word that is a token is that token, even if no merges lead there.
  bool byte_level = false;     ///< Letters are bytes; the vocabulary is spelled in the byte alphabet.
};

class Bpe {
 public:
  /// Memory that one caller keeps between words.
  struct Scratch {
    struct Symbol {
      TokenId id = 0;
      std::int32_t previous = -1;
      std::int32_t next = -1;
      bool gone = false;
    };
    struct Candidate {
      MergeRank rank = 0;
      std::int32_t at = 0;
      TokenId merged = 0;
    };
    std::vector<TokenId> letters;
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
  };

  /// Without vocabulary; to be assigned to.
  Bpe() = default;

  /// Refuses merges that name tokens that are not there.
  [[nodiscard]] static Result<Bpe> make(const BpeModel& model);

  /// Appends the tokens of `word`. Letters that the vocabulary lacks become the unknown token, or vanish
  /// where there is none. O(n log n).
  void encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  Result<std::size_t> add_merges(const BpeModel& model);
  void add_letters(const BpeModel& model);
  void mark_whole_words(const BpeModel& model);
  [[nodiscard]] std::optional<TokenId> find(std::string_view text) const;
  [[nodiscard]] std::optional<TokenId> character(std::string_view letter) const;
  void byte_letters(std::string_view word, std::vector<TokenId>& letters) const;
  void character_letters(std::string_view word, std::vector<TokenId>& letters) const;
  bool fall_back_to_bytes(std::string_view letter, std::vector<TokenId>& letters) const;
  void merge(Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_short(std::vector<TokenId>& letters, std::vector<TokenId>& out) const;
  void merge_long(Scratch& scratch, std::vector<TokenId>& out) const;
  void consider(std::int32_t left, Scratch& scratch) const;

  static constexpr TokenId kNone = ~TokenId{0};

  // Spelled in bytes where the model is byte-level.
  std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> tokens_;
  MergeTable merges_;
  std::vector<bool> whole_;           // By token: encoding its spelling gives just this token.
  std::size_t longest_ = 0;           // Bytes of the longest token.
  std::array<TokenId, 256> bytes_{};  // The letter of each byte, or its fallback token.
  std::vector<TokenId> characters_;   // The letters below U+10000 by code point.
  std::optional<TokenId> unknown_;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool byte_level_ = false;
};

}  // namespace sangam::text
