// A fluid picture of the dispatch: work ahead fills the workers up to a level, as water does.
#include "actors/scheduler/first_token.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace sangam {
namespace {

/// A worker that could take the request; times in microseconds from now.
struct Basin {
  double floor = 0.0;  ///< When it has done what it has and what other models have ahead.
  double work = 0.0;   ///< All that the request's own model has ahead, if this worker did it alone.
  double own = 0.0;    ///< The request's prefill.
};

PrefillWork hurried_ahead(const PlaceInLine& place, const Backlog& backlog, ModelIndex model) {
  return place.prefill.has_deadline() ? backlog.work_due_by(model, place.prefill.deadline)
                                      : backlog.hurried_work(model);
}

/// Work of other models, each divided by the number of its workers. Asked once for each model.
class OtherModels {
 public:
  OtherModels(const PlaceInLine& place, const Fleet& fleet, const Backlog& backlog)
      : place_(place), fleet_(fleet), backlog_(backlog) {}

  /// In microseconds. `turns`: what the request's own model has ahead without deadlines, on this worker.
  double on(const Worker& worker, double turns) {
    double micros = 0.0;
    for (const auto& [model, instance] : worker.instances) {
      if (model == place_.prefill.model || !worker.holds(model)) continue;
      const Share& share = share_of(model);
      micros += share.hurried.micros(worker.cost[model]) / share.workers;
      micros += std::min(share.unhurried.micros(worker.cost[model]) / share.workers, turns);
    }
    return micros;
  }

 private:
  struct Share {
    PrefillWork hurried;
    PrefillWork unhurried;
    double workers = 1.0;
  };

  const Share& share_of(ModelIndex model) {
    const auto [entry, is_new] = shares_.try_emplace(model);
    Share& share = entry->second;
    if (!is_new) return share;
    share.hurried = hurried_ahead(place_, backlog_, model);
    if (!place_.prefill.has_deadline()) share.unhurried = backlog_.unhurried_work(model);
    share.workers = std::max(double(fleet_.takers_of_prompts(model)), 1.0);
    return share;
  }

  const PlaceInLine& place_;
  const Fleet& fleet_;
  const Backlog& backlog_;
  std::map<ModelIndex, Share> shares_;
};

/// The time at which the basins, together, have done the work ahead.
double level_of(std::vector<Basin>& basins) {
  std::sort(basins.begin(), basins.end(), [](const Basin& a, const Basin& b) { return a.floor < b.floor; });
  // Up to time t a basin does (t - floor) / work of the whole; the level is where these shares sum up to 1.
  double rate = 0.0;
  double shift = 1.0;
  double level = basins.front().floor;
  for (std::size_t i = 0; i < basins.size(); ++i) {
    if (basins[i].work <= 0.0) return basins.front().floor;
    if (rate > 0.0 && basins[i].floor >= shift / rate) break;
    rate += 1.0 / basins[i].work;
    shift += basins[i].floor / basins[i].work;
    level = shift / rate;
  }
  return level;
}

}  // namespace

std::optional<Micros> first_token_in(const PlaceInLine& place, const Fleet& fleet, const Backlog& backlog,
                                     Instant now) {
  const ModelIndex model = place.prefill.model;
  const PrefillWork hurried = hurried_ahead(place, backlog, model);
  const PrefillWork unhurried =
      place.prefill.has_deadline() ? PrefillWork{} : backlog.work_up_to_rank(model, place.rank);
  const double workers = std::max(double(fleet.takers_of_prompts(model)), 1.0);
  OtherModels others(place, fleet, backlog);
  std::vector<Basin> basins;
  for (const Worker* worker : fleet.holders_of(std::array{model})) {
    if (!worker->holds(model)) continue;
    const PrefillCost& cost = worker->cost[model];
    Basin basin;
    basin.own = double(worker->length(place.prefill).count());
    const double turns = unhurried.micros(cost) / workers + basin.own;
    basin.work = hurried.micros(cost) + unhurried.micros(cost);
    basin.floor = double((worker->line.free_at(now) - now).count()) + others.on(*worker, turns);
    basins.push_back(basin);
  }
  if (basins.empty()) return std::nullopt;
  const double level = level_of(basins);
  double end = std::max(basins.front().floor, level) + basins.front().own;
  for (const Basin& basin : basins) end = std::min(end, std::max(basin.floor, level) + basin.own);
  constexpr double kForEver = 1e15;  // As in Worker::length.
  return Micros(std::llround(std::min(end, kForEver)));
}

}  // namespace sangam
