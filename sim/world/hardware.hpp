// What devices and models cost in time and bytes, with the published figures of Janus's testbed.
#pragma once

#include <string>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam::sim {

/// One accelerator. Defaults: a die of Janus's testbed (64 GB; links as measured there); the time of an
/// activation is the line that fits its published points.
struct DeviceSpec {
  Bytes memory{64'000'000'000};
  double memory_share = 0.9;  ///< For weights and KV; the rest is for activations.
  double flops = 376e12;
  double read_bytes_per_second = 1490e9;
  double peer_bytes_per_second = 101e9;   ///< Weights from another device's memory,
  double host_bytes_per_second = 59e9;    ///< from host memory,
  double storage_bytes_per_second = 2e9;  ///< from storage.
  Micros activation_fixed{330'000};

  [[nodiscard]] Bytes usable() const { return Bytes(std::int64_t(double(memory.count()) * memory_share)); }
};

/// A model as one of its workers runs it; a worker is `devices` of them, alike, so bytes are those of one.
struct ModelSpec {
  ModelId id;
  std::string base;  ///< What it is a fine-tune of: models of one base have the same shape.
  std::int64_t devices = 1;
  Bytes weights{0};
  Bytes kv_per_token{0};
  double prefill_fixed = 0.0;  ///< Microseconds of a prefill, and of each of its tokens.
  double prefill_per_token = 0.0;
  double decode_fixed = 0.0;        ///< Microseconds of a step: launch and the weights' reading,
  double decode_per_sequence = 0.0;
  double decode_per_context = 0.0;  ///< and for each token of context: the KV's reading.

  [[nodiscard]] double prefill(Tokens tokens) const {
    return prefill_fixed + prefill_per_token * double(tokens.count());
  }
  /// A decode step of so many sequences with so many tokens of context in all.
  [[nodiscard]] double step(double sequences, double context) const {
    return sequences <= 0.0 ? 0.0 : decode_fixed + decode_per_sequence * sequences + decode_per_context * context;
  }
};

/// One of the nine bases of W0 (Janus publishes six at one device, two at four, one at sixteen; their sizes are
/// our choice among those that it names), by its name.
struct BaseSpec {
  std::string name;
  std::int64_t devices = 1;
  double parameters = 0.0;         ///< Billions.
  double active_parameters = 0.0;  ///< Billions that a token passes.
  double bytes_per_parameter = 2.0;
  Bytes kv_per_token{0};  ///< Over all devices.
};
[[nodiscard]] const std::vector<BaseSpec>& w0_bases();

/// A fine-tune of `base` on such devices. A prefill takes the published 67.27 ms and 0.0964 ms a token, the latter
/// for 8 billion active parameters on one device and in proportion for others; a step is bound by bandwidth.
[[nodiscard]] ModelSpec fine_tune(ModelId id, const BaseSpec& base, const DeviceSpec& device);

}  // namespace sangam::sim
