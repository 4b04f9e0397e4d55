// What a worker's core needs from whatever computes: the door between decisions and the engine.
#pragma once

#include <vector>

#include "messages/vocabulary/request.hpp"
#include "messages/vocabulary/residency.hpp"

namespace sangam {

/// What loading a model has shown.
struct LoadedInstance {
  double prefill_tokens_per_second = 0.0;  ///< Measured.
  std::string weights_digest;
  std::vector<std::string> warnings;
};

/// How far a request's first prefill came in one step; the last such report of a request is `done`.
struct PrefillRows {
  RequestId request{};
  Tokens rows{0};
  bool done = false;
};

struct StepOutcome {
  std::vector<TokensProduced> produced;  ///< Complete but for `cached`.
  std::vector<PrefillRows> prefills;
  Micros elapsed{0};  ///< Measured: the step's own duration.
};

/// One call at a time.
class Runner {
 public:
  virtual ~Runner() = default;

  virtual Result<LoadedInstance> load(const ModelId& model) = 0;
  /// Tokens of it that would fit beside all weights that are loaded now.
  [[nodiscard]] virtual Tokens kv_capacity(const ModelId& model) const = 0;
  /// On success its tokens come out of `step`, the last with a finish. The request must not be live.
  virtual Result<void> add(const Run& run) = 0;
  /// Nothing more comes for this request.
  virtual void cancel(RequestId request) = 0;
  [[nodiscard]] virtual bool has_work() const = 0;
  [[nodiscard]] virtual StepOutcome step() = 0;
  /// All but `worker`.
  [[nodiscard]] virtual InstanceStatus status(const ModelId& model) const = 0;
};

}  // namespace sangam
