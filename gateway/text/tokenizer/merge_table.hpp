// Which two tokens merge into which third, and how early: a hash table that is read millions of times a
// second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "messages/vocabulary/names.hpp"

namespace sangam::text {

using MergeRank = std::uint32_t;
constexpr MergeRank kNoMerge = ~MergeRank{0};

/// Open addressing over pairs of tokens, filled once.
class MergeTable {
 public:
  struct Merge {
    MergeRank rank = kNoMerge;  ///< Lower ranks merge first.
    TokenId merged = 0;
  };

  explicit MergeTable(std::size_t merges = 0) {
    std::size_t size = 16;
    while (size < merges * 2) size *= 2;
    slots_.resize(size);
  }

  /// Of two merges of one pair the later counts.
  void add(TokenId left, TokenId right, Merge merge) {
    slots_[place(key(left, right))] = {key(left, right), merge};
  }

  /// The rank is kNoMerge where the two do not merge.
  [[nodiscard]] Merge find(TokenId left, TokenId right) const {
    return slots_[place(key(left, right))].merge;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // No token has the id 2^32 - 1.
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };

  static std::uint64_t key(TokenId left, TokenId right) { return std::uint64_t{left} << 32 | right; }

  [[nodiscard]] std::size_t place(std::uint64_t key) const {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // Fibonacci hashing.
    std::size_t at = (key * kGoldenRatio >> 20) & (slots_.size() - 1);
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace sangam::text
