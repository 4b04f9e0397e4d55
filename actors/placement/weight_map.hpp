// What the models of a mesh share: their weight segments, grouped by who has them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "actors/placement/packing.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// A model's weights.
struct WeightParts {
  std::int64_t devices = 1;  ///< The class of workers that can hold it.
  Bytes all{0};
  Bytes alone{0};                     ///< Of segments that no other model has.
  std::vector<std::uint32_t> pieces;  ///< The groups of the others, ascending.
  std::uint32_t family = kNoFamily;   ///< Models that share, also through others, are of one family.
};

/// A piece is the segments that exactly the same models have: thousands of tensors become a few numbers.
class WeightMap {
 public:
  /// Takes a model's table in; an earlier one of the same model is replaced. True if that changed anything.
  bool set(const ModelTable& table);

  /// Null for a model whose table is not known.
  [[nodiscard]] const WeightParts* parts(const ModelId& model);
  [[nodiscard]] const std::vector<Bytes>& pieces();

 private:
  void group();

  std::map<ModelId, ModelTable> tables_;
  std::map<ModelId, WeightParts> parts_;
  std::vector<Bytes> pieces_;
  bool is_current_ = true;
};

}  // namespace sangam
