// The published constants, and what follows from them for models of other sizes.
#include "sim/world/hardware.hpp"

namespace sangam::sim {
namespace {

/// Janus's default latency model, in microseconds; for its 8 B model.
constexpr double kPrefillFixed = 67'270.0;
constexpr double kPrefillPerToken = 96.4;
constexpr double kPrefillParameters = 8.0;
/// Launch and synchronisation of a step; and the share of bandwidth that a step reaches.
constexpr double kStepLaunch = 4'000.0;
constexpr double kBandwidthShare = 0.8;
constexpr double kPerSequence = 30.0;

}  // namespace

const std::vector<BaseSpec>& w0_bases() {
  static const std::vector<BaseSpec> bases = {
      {"dense-0.6b", 1, 0.6, 0.6, 2.0, Bytes(114'688)},   {"dense-1.7b", 1, 1.7, 1.7, 2.0, Bytes(114'688)},
      {"dense-3b", 1, 3.1, 3.1, 2.0, Bytes(36'864)},      {"dense-4b", 1, 4.0, 4.0, 2.0, Bytes(147'456)},
      {"dense-7b", 1, 7.6, 7.6, 2.0, Bytes(57'344)},      {"dense-8b", 1, 8.2, 8.2, 2.0, Bytes(147'456)},
      {"dense-14b", 4, 14.8, 14.8, 2.0, Bytes(163'840)},  {"dense-32b", 4, 32.8, 32.8, 2.0, Bytes(262'144)},
      {"moe-671b", 16, 671.0, 37.0, 1.0, Bytes(70'272)},
  };
  return bases;
}

ModelSpec fine_tune(ModelId id, const BaseSpec& base, const DeviceSpec& device) {
  ModelSpec model;
  model.id = std::move(id);
  model.base = base.name;
  model.devices = base.devices;
  const auto devices = double(base.devices);
  const double billion = 1e9;
  model.weights = Bytes(std::int64_t(base.parameters * billion * base.bytes_per_parameter / devices));
  // Latent attention keeps one small vector a token on every device; heads of the others are divided.
  model.kv_per_token = Bytes(base.active_parameters < base.parameters ? base.kv_per_token.count()
                                                                      : base.kv_per_token.count() / base.devices);
  model.prefill_fixed = kPrefillFixed;
  model.prefill_per_token = kPrefillPerToken * base.active_parameters / (kPrefillParameters * devices);
  const double bytes_per_micro = device.read_bytes_per_second * kBandwidthShare / 1e6;
  model.decode_fixed =
      kStepLaunch + base.active_parameters * billion * base.bytes_per_parameter / devices / bytes_per_micro;
  model.decode_per_sequence = kPerSequence;
  model.decode_per_context = double(model.kv_per_token.count()) / bytes_per_micro;
  return model;
}

}  // namespace sangam::sim
