// The smallest size that is enough, as each policy understands it.
#include "actors/autoscaler/sizing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace sangam {
namespace {

/// Where no number reaches the target: the smallest that comes within this of the best.
constexpr double kNoGain = 0.001;

/// Bounds rise with the number. Without a forecast one is enough to learn.
std::int64_t smallest(const std::vector<double>& bounds, double target) {
  if (bounds.empty()) return 1;
  const double wanted = std::min(target, bounds.back() - kNoGain);
  const auto enough = std::lower_bound(bounds.begin(), bounds.end(), wanted);
  return std::max<std::int64_t>(1, enough - bounds.begin() + 1);
}

}  // namespace

Need elasticity(const ModelView& view, const SizingOptions& options) {
  const Need divided{
      std::min(smallest(view.forecast.prefill_attainment, options.attainment), options.instances_max),
      std::min(smallest(view.forecast.decode_attainment, options.attainment), options.instances_max)};
  const auto& mixed = view.forecast.mixed_attainment;
  const std::int64_t enough = std::min(smallest(mixed, options.attainment), options.instances_max);
  const bool is_enough = mixed.empty() || (enough > 0 && mixed[std::size_t(enough - 1)] >= options.attainment);
  // Whoever is divided does not become mixed and back for one worker.
  const std::int64_t worth = view.now.prefill > 0 ? divided.total() * 3 / 4 : divided.total();
  Need need = is_enough && enough <= worth ? Need{0, 0, enough} : divided;
  const bool bursts = view.forecast.volatility >= options.spare_from &&
                      view.forecast.requests_per_second >= options.spare_rate;
  std::int64_t& prompts = need.mixed > 0 ? need.mixed : need.prefill;
  if (bursts) ++prompts;
  const std::int64_t for_queue = view.waiting / options.waiting_per_worker;
  if (for_queue > 0) prompts = std::max(prompts, view.now.mixed + view.now.prefill + for_queue);
  prompts = std::min(prompts, options.instances_max);
  return need;
}

Need reactive(const ModelView& view, const SizingOptions& options) {
  const auto now = double(std::max<std::int64_t>(view.now.prefill, 1));
  const double load = view.forecast.input_tokens_per_second / (now * options.reactive_tokens_per_second);
  const bool keeps = view.now.prefill > 0 && load >= options.reactive_low && load <= options.reactive_high;
  const double wanted = keeps ? now : std::ceil(load * now / options.reactive_high);
  const auto workers = std::clamp<std::int64_t>(std::int64_t(wanted), 1, options.reactive_max);
  return {workers, std::clamp<std::int64_t>((workers + 3) / 4, 1, options.reactive_max)};
}

Need per_app(const ModelView& view, const SizingOptions& options) {
  const std::int64_t wanted = (view.ongoing + options.per_app_ongoing - 1) / options.per_app_ongoing;
  return {std::clamp<std::int64_t>(wanted, 1, options.per_app_max), 1};
}

Need unchanged(const ModelView& view, const SizingOptions&) {
  return view.now.total() > 0 ? view.now : Need{1, 1};
}

Result<SizingPolicy> sizing_policy(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, SizingPolicy>, 4> kPolicies{{
      {"elasticity_gp", elasticity}, {"reactive", reactive}, {"per_app", per_app}, {"none", unchanged}}};
  std::string known;
  for (const auto& [known_name, policy] : kPolicies) {
    if (known_name == name) return policy;
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  return make_error(ErrorCode::invalid_input,
                    "autoscaler policy '" + std::string(name) + "' is not known; use one of " + known);
}

}  // namespace sangam
