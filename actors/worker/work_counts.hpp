// What a worker has done since its start, model by model: the counts that its telemetry tells.
#pragma once

#include <cstdint>
#include <map>

#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// What one step did for one model.
struct StepShare {
  Tokens prefilled{0};  ///< Rows of prompts.
  Tokens decoded{0};    ///< Rows of runs whose prompt had been computed before; each makes a token.
  Tokens context{0};    ///< That these read: the sum of their lengths.
  Tokens output{0};     ///< All tokens that were made, also the first ones of prompts.
};

/// A step's time is divided among prompts and decodes of all its models by their rows.
class WorkCounts {
 public:
  void start(Instant now);
  void add(const std::map<ModelId, StepShare>& step, Micros took);

  /// All that concerns no single model. What is told since the letter before begins anew.
  [[nodiscard]] Telemetry letter(Instant now);
  /// The model's counts; what it does now is for the caller to add.
  [[nodiscard]] ModelLoad load(const ModelId& model) const;

 private:
  std::map<ModelId, ModelLoad> loads_;
  Instant started_{};
  Instant told_{};  ///< When the last letter was made.
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
  Micros busy_{0};
  Micros longest_{0};   ///< Since the last letter, as the next two.
  Micros prefills_{0};
  Micros decodes_{0};
};

}  // namespace sangam
