// Where keys and values lie: pages of the device's pool, and the place of a (layer, head, token) inside a
// page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sangam {

/// The number of a physical page in the device's pool.
enum class PageId : std::uint32_t {};

/// Where the pool lies: page p occupies [base + p * page_bytes, base + (p + 1) * page_bytes).
struct PageArena {
  std::byte* base = nullptr;
  std::size_t page_bytes = 0;

  [[nodiscard]] std::byte* at(PageId page) const { return base + std::size_t(page) * page_bytes; }
};

/// How one page is divided: (layer, key or value, kv_head, token, head_dim), elements of 16-bit IEEE floats.
struct KvLayout {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t tokens_per_page = 0;

  /// Elements before the first token of this head; the tokens of a head are adjacent.
  [[nodiscard]] std::int64_t key_offset(std::int64_t layer, std::int64_t head) const {
    return (layer * 2 * kv_heads + head) * tokens_per_page * head_dim;
  }
  [[nodiscard]] std::int64_t value_offset(std::int64_t layer, std::int64_t head) const {
    return ((layer * 2 + 1) * kv_heads + head) * tokens_per_page * head_dim;
  }
  [[nodiscard]] std::size_t bytes_per_token() const {
    return std::size_t(layers * 2 * kv_heads * head_dim) * sizeof(std::uint16_t);
  }
};

/// The rows of one sequence in a step: positions [position, position + count) of the sequence.
struct KvRows {
  std::int64_t position = 0;
  std::int64_t count = 0;
  std::span<const PageId>
      pages;  ///< Page i holds positions [i * tokens_per_page, (i + 1) * tokens_per_page).
};

/// The keys and values of one layer, as a step reads and writes them.
struct KvLayer {
  PageArena arena;
  KvLayout layout;
  std::int64_t layer = 0;
  std::span<const KvRows> sequences;  ///< In the order of the step's rows.
};

}  // namespace sangam
