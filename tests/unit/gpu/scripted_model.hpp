// A model whose logits are a hash of every token that it reads back from the pages: lost, swapped or stale KV
// changes what it says. Its step can be watched.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gpu/engine/engine.hpp"

namespace sangam {

struct ScriptedStep {
  std::int64_t rows = 0;
  std::int64_t sequences = 0;
  std::uint64_t salt = 0;             ///< Of the model.
  std::vector<std::int64_t> rows_of;  ///< In the order of the slices.
};

class ScriptedModel final : public Model {
 public:
  struct Script {
    std::size_t bytes_per_token = 16;  ///< At least 16 a layer.
    std::int64_t layers = 1;
    std::int64_t vocab_size = 50;
    std::int64_t context = 200;
    std::uint64_t salt = 0;             ///< Another salt is another model.
    std::int64_t not_a_number_at = -1;  ///< The length at which logits break.
  };

  explicit ScriptedModel(Script script, std::vector<ScriptedStep>* steps = nullptr)
      : script_(script), steps_(steps) {
    config_.vocab_size = script.vocab_size;
    config_.context = script.context;
    config_.layers = script.layers;
    config_.kv_heads = 1;
    config_.head_dim = std::int64_t(script.bytes_per_token) / script.layers / 4;
  }

  const ModelConfig& config() const override { return config_; }
  std::size_t kv_bytes_per_token() const override { return script_.bytes_per_token; }
  std::int64_t tokens_per_page(std::size_t page_bytes) const override {
    return std::int64_t(page_bytes / script_.bytes_per_token);
  }

  void forward(std::span<const SequenceSlice> slices, PageArena arena, std::span<float> logits,
               const LayerDone& layer_done) override {
    ScriptedStep step;
    step.salt = script_.salt;
    for (const SequenceSlice& slice : slices) {
      step.rows += std::int64_t(slice.tokens.size());
      step.sequences += 1;
      step.rows_of.push_back(std::int64_t(slice.tokens.size()));
    }
    for (std::int64_t layer = 0; layer < script_.layers; ++layer) {
      for (const SequenceSlice& slice : slices) write(slice, arena, layer);
      if (layer_done) layer_done(layer);
    }
    std::size_t row = 0;
    for (const SequenceSlice& slice : slices) {
      if (!slice.wants_logits) continue;
      fill(slice, arena,
           logits.subspan(row++ * std::size_t(script_.vocab_size), std::size_t(script_.vocab_size)));
    }
    if (steps_ != nullptr) steps_->push_back(std::move(step));
  }

 private:
  /// Eight bytes where the key of a position lies, or its value.
  std::byte* place(const SequenceSlice& slice, PageArena arena, std::int64_t position,
                   std::int64_t offset) const {
    const std::int64_t per_page = tokens_per_page(arena.page_bytes);
    const std::int64_t element = offset + position % per_page * config_.head_dim;
    return arena.at(slice.pages[std::size_t(position / per_page)]) +
           std::size_t(element) * sizeof(std::uint16_t);
  }

  void write(const SequenceSlice& slice, PageArena arena, std::int64_t layer) const {
    const KvLayout layout = kv_layout(*this, arena.page_bytes);
    for (std::size_t i = 0; i < slice.tokens.size(); ++i) {
      const std::uint64_t position = std::uint64_t(slice.position) + i;
      const std::uint64_t token = slice.tokens[i] + script_.salt + (std::uint64_t(layer) << 40);
      std::memcpy(place(slice, arena, std::int64_t(position), layout.key_offset(layer, 0)), &token,
                  sizeof token);
      std::memcpy(place(slice, arena, std::int64_t(position), layout.value_offset(layer, 0)), &position,
                  sizeof position);
    }
  }

  void fill(const SequenceSlice& slice, PageArena arena, std::span<float> logits) const {
    const KvLayout layout = kv_layout(*this, arena.page_bytes);
    const std::int64_t length = slice.position + std::int64_t(slice.tokens.size());
    std::uint64_t state = script_.salt;
    for (std::int64_t layer = 0; layer < script_.layers; ++layer) {
      for (std::int64_t position = 0; position < length; ++position) {
        std::uint64_t key = 0;
        std::uint64_t value = 0;
        std::memcpy(&key, place(slice, arena, position, layout.key_offset(layer, 0)), sizeof key);
        std::memcpy(&value, place(slice, arena, position, layout.value_offset(layer, 0)), sizeof value);
        state = mixed(state ^ key ^ (value << 32));
      }
    }
    for (float& logit : logits) {
      state = mixed(state);
      logit = float(double(state >> 40) * 0x1.0p-24 * 8.0 - 4.0);
    }
    if (length == script_.not_a_number_at)
      logits[logits.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  }

  /// The finalizer of SplitMix64.
  static std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  Script script_;
  std::vector<ScriptedStep>* steps_;
  ModelConfig config_;
};

}  // namespace sangam
