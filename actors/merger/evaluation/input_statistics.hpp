// What the slots of a model see: grams of the inputs of each linear layer, taken while the model computes.
#pragma once

#include <vector>

#include "actors/merger/weights/matrix.hpp"
#include "gpu/kernels/ops.hpp"

namespace sangam::merging {

/// The places of one layer where slots read: q, k and v see one input, gate and up another.
enum class InputSite : std::uint8_t { attention, output, mlp, down };
inline constexpr std::size_t kInputSites = 4;

/// Computes with `ops` and adds up the inputs of every linear layer, in the order in which a decoder-only transformer
/// asks for them. Behind the last layer's keys only rows that give logits are seen.
class InputStatistics final : public Ops {
 public:
  InputStatistics(Ops& ops, std::int64_t layers) : ops_(ops), grams_(std::size_t(layers) * kInputSites + 1) {}

  [[nodiscard]] const Gram& gram(std::int64_t layer, InputSite site) const {
    return grams_[std::size_t(layer) * kInputSites + std::size_t(site)];
  }
  /// Of the head.
  [[nodiscard]] const Gram& head() const { return grams_.back(); }

  [[nodiscard]] std::string_view name() const override { return ops_.name(); }
  void embed(const Linear& table, std::span<const TokenId> tokens, float* out) override {
    next_ = 0;  // A step begins.
    ops_.embed(table, tokens, out);
  }
  void rms_norm(const Rows& x, const float* weight, float epsilon, float* out) override {
    ops_.rms_norm(x, weight, epsilon, out);
  }
  void linear(const Rows& x, std::span<const Projection> projections) override;
  void rotate(float* heads, std::int64_t rows, std::int64_t heads_per_row, const Rotation& by) override {
    ops_.rotate(heads, rows, heads_per_row, by);
  }
  void store_kv(const KvLayer& kv, const float* k, const float* v) override { ops_.store_kv(kv, k, v); }
  void attention(const KvLayer& kv, const AttentionShape& shape, const float* q, float* out) override {
    ops_.attention(kv, shape, q, out);
  }
  void swiglu(float* gate, const float* up, std::int64_t count) override { ops_.swiglu(gate, up, count); }

 private:
  Ops& ops_;
  std::vector<Gram> grams_;
  std::size_t next_ = 0;
};

}  // namespace sangam::merging
