// How many workers a model should have: the named policies of the autoscaler.
#pragma once

#include <cstdint>
#include <string_view>

#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// Workers that only prefill and workers that only decode; or workers that do everything.
struct Need {
  std::int64_t prefill = 0;
  std::int64_t decode = 0;
  std::int64_t mixed = 0;

  [[nodiscard]] std::int64_t total() const { return prefill + decode + mixed; }
  bool operator==(const Need&) const = default;
};

struct SizingOptions {
  double attainment = 0.99;  ///< The on-time share that the lower bound must reach.
  std::int64_t instances_max = 64;  ///< Of each kind.
  /// A model whose peak is so many times its mean, and that has so many requests a second, gets one worker more to
  /// prefill: its next burst comes faster than any worker could be woken. With fewer requests a peak is chance.
  double spare_from = 4.0;
  double spare_rate = 2.0;
  /// One worker more for each so many requests that wait: a queue shows a burst before any rate does.
  std::int64_t waiting_per_worker = 8;
  /// Of `reactive`: a prefill worker's tokens per second, and the loads between which nothing changes (BlitzScale:
  /// 4096, 0.5 to 0.8, up to 8 workers of each kind).
  double reactive_tokens_per_second = 4096.0;
  double reactive_low = 0.5;
  double reactive_high = 0.8;
  std::int64_t reactive_max = 8;
  /// Of `per_app`: requests under way that one worker is meant for (ServerlessLLM: 8, up to 8 workers).
  std::int64_t per_app_ongoing = 8;
  std::int64_t per_app_max = 8;
};

/// A model as a policy sees it: what is forecast, and what is.
struct ModelView {
  const ModelForecast& forecast;
  std::int64_t ongoing = 0;  ///< Requests that wait or run.
  Need now;
  std::int64_t waiting = 0;  ///< Those that wait.
};

/// What an active model should have: mixed workers, or at least one of each of the other kinds.
using SizingPolicy = Need (*)(const ModelView&, const SizingOptions&);

/// The smallest number whose attainment bound meets the target, each kind by itself (Janus's elastic pool); mixed
/// workers where they need be no more than the others together. More than there are where requests wait.
[[nodiscard]] Need elasticity(const ModelView& view, const SizingOptions& options);
/// One step up or down when the token rate leaves the band.
[[nodiscard]] Need reactive(const ModelView& view, const SizingOptions& options);
/// By the requests under way.
[[nodiscard]] Need per_app(const ModelView& view, const SizingOptions& options);
/// What it has.
[[nodiscard]] Need unchanged(const ModelView& view, const SizingOptions& options);

/// By name: elasticity_gp, reactive, per_app, none. The error names them.
[[nodiscard]] Result<SizingPolicy> sizing_policy(std::string_view name);

}  // namespace sangam
