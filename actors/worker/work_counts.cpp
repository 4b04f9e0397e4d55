// Sums over steps.
#include "actors/worker/work_counts.hpp"

#include <algorithm>

namespace sangam {

void WorkCounts::start(Instant now) {
  started_ = told_ = now;
}

void WorkCounts::add(const std::map<ModelId, StepShare>& step, Micros took) {
  ++steps_;
  busy_ += took;
  longest_ = std::max(longest_, took);
  Tokens rows;
  for (const auto& [model, share] : step) rows += share.prefilled + share.decoded;
  for (const auto& [model, share] : step) {
    ModelLoad& load = loads_[model];
    load.prefill_tokens += std::uint64_t(share.prefilled.count());
    load.output_tokens += std::uint64_t(share.output.count());
    load.context_tokens += std::uint64_t(share.context.count());
    if (share.decoded > Tokens(0)) ++load.decode_steps;
    if (rows == Tokens(0)) continue;
    const Micros prefilled = took * share.prefilled.count() / rows.count();
    const Micros decoded = took * share.decoded.count() / rows.count();
    load.prefill_time += prefilled;
    load.decode_time += decoded;
    prefills_ += prefilled;
    decodes_ += decoded;
  }
}

Telemetry WorkCounts::letter(Instant now) {
  Telemetry letter;
  letter.sequence = ++sequence_;
  letter.up = now - started_;
  letter.busy = busy_;
  letter.steps = steps_;
  letter.longest_step = longest_;
  // A step counts when it ends, so that one which began before the last letter may be longer than the time since.
  const double span = double(std::max(now - told_, Micros(1)).count());
  letter.compute = std::min(1.0, double(prefills_.count()) / span);
  letter.bandwidth = std::min(1.0, double(decodes_.count()) / span);
  told_ = now;
  longest_ = prefills_ = decodes_ = Micros(0);
  return letter;
}

ModelLoad WorkCounts::load(const ModelId& model) const {
  const auto found = loads_.find(model);
  ModelLoad load = found == loads_.end() ? ModelLoad{} : found->second;
  load.model = model;
  return load;
}

}  // namespace sangam
