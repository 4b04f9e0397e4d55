// What a page of the pool is used for, by whom, and the sums of that.
#pragma once

#include <cstdint>
#include <map>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"

namespace sangam {

/// `reserved`: promised to an operation of several steps. `cached`: held for a model, but not needed by a
/// live request.
enum class PageUse : std::uint8_t { free, reserved, kv, cached, weights };

/// A model, by the number that the pool gave it. Weights may be several models' and are nobody's.
enum class PageOwner : std::uint16_t { nobody };

struct PageState {
  PageUse use = PageUse::free;
  bool poisoned = false;  ///< Since it is free or spare; every byte of it is known.
  PageOwner owner = PageOwner::nobody;
  std::uint32_t holders = 0;  ///< Segments that lie in it; 0 unless it has weights.
};

struct ModelPages {
  Pages kv{};
  Pages cached{};

  bool operator==(const ModelPages&) const = default;
};

/// Every page is counted once: total = free + reserved + weights + the sum over `models`.
struct PoolLedger {
  Bytes page{};
  Pages total{};
  Pages free{};
  Pages reserved{};
  Pages weights{};
  std::map<ModelId, ModelPages> models;  ///< That have ever taken a page.

  bool operator==(const PoolLedger&) const = default;
};

}  // namespace sangam
