// Tensors of known bytes, and whether a table holds them.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/memory/segment_store.hpp"

namespace sangam::testing {

/// Owns bytes and shows them as a tensor of i8.
struct Weight {
  Weight(std::string name, std::size_t size, std::uint64_t seed) : name(std::move(name)), bytes(size) {
    std::mt19937_64 random(seed);
    for (std::byte& byte : bytes) byte = std::byte(random() & 0xFF);
  }
  [[nodiscard]] NamedTensor tensor() const {
    return {name, {DType::i8, {std::int64_t(bytes.size())}, bytes}};
  }
  [[nodiscard]] WantedSlot wanted(bool with_source) const {
    const Bytes size{std::int64_t(bytes.size())};
    return {name,
            DType::i8,
            {size.count()},
            size,
            digest_of(bytes),
            with_source ? std::span<const std::byte>(bytes) : std::span<const std::byte>()};
  }
  [[nodiscard]] bool is(std::span<const std::byte> other) const {
    return std::ranges::equal(other, bytes);
  }

  std::string name;
  std::vector<std::byte> bytes;
};

inline bool holds(const SlotTable& table, const Weight& expected) {
  const auto found = table.find(expected.name);
  return found && expected.is(found->bytes);
}

inline std::vector<NamedTensor> tensors_of(const std::vector<const Weight*>& weights) {
  std::vector<NamedTensor> tensors;
  for (const Weight* weight : weights) tensors.push_back(weight->tensor());
  return tensors;
}

/// Takes all pages as KV of one model and gives back those with an odd number: no two free pages are
/// neighbours.
inline std::vector<PageId> scatter(PagePool& pool, PageOwner owner) {
  std::vector<PageId> taken;
  while (const auto page = pool.take(owner)) taken.push_back(*page);
  std::vector<PageId> kept;
  for (const PageId page : taken) {
    if (std::uint32_t(page) % 2 == 1) {
      pool.give_back(page, owner);
    } else {
      kept.push_back(page);
    }
  }
  return kept;
}

}  // namespace sangam::testing
