// The orders are sets beside the map that owns the jobs; a node of the map never moves.
#include "actors/scheduler/backlog.hpp"

#include <algorithm>
#include <queue>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

void Backlog::add(WaitingJob job) {
  SANGAM_ASSERT(job.prefill.model < lanes_.size(), job.prefill.model, lanes_.size());
  Lane& lane = lanes_[job.prefill.model];
  job.prefill.arrival = arrivals_++;
  job.prefill.turn = lane.turns++;
  const auto [place, is_new] = jobs_.emplace(job.request, job);
  SANGAM_ASSERT(is_new, job.request);
  const WaitingJob& kept = place->second;
  if (kept.prefill.has_deadline()) {
    lane.by_deadline.insert(key(kept.prefill.deadline, kept));
    lane.by_latest_start.insert(key(kept.latest_start(), kept));
    lane.hurried_work.insert(work_key(kept), kept.prefill.tokens);
  } else {
    if (lane.by_rank.empty()) start_share(lane);
    lane.by_rank.insert(key(kept.rank, kept));
    lane.unhurried_work.insert(work_key(kept), kept.prefill.tokens);
  }
}

/// A model that had nothing to do has not saved up turns: it begins level with the least served.
void Backlog::start_share(Lane& lane) {
  Micros least = Micros::max();
  for (const Lane& other : lanes_) {
    if (!other.by_rank.empty()) least = std::min(least, other.served);
  }
  if (least != Micros::max()) lane.served = std::max(lane.served, least);
}

void Backlog::remove(RequestId request) {
  const auto place = jobs_.find(request);
  if (place == jobs_.end()) return;
  const WaitingJob& job = place->second;
  Lane& lane = lanes_[job.prefill.model];
  if (job.prefill.has_deadline()) {
    lane.by_deadline.erase(key(job.prefill.deadline, job));
    lane.by_latest_start.erase(key(job.latest_start(), job));
    lane.hurried_work.erase(work_key(job));
  } else {
    lane.by_rank.erase(key(job.rank, job));
    lane.unhurried_work.erase(work_key(job));
  }
  jobs_.erase(place);
}

void Backlog::remove_all(ModelIndex model) {
  Lane& lane = lanes_[model];
  for (const auto* order : {&lane.by_deadline, &lane.by_rank}) {
    for (const auto& [position, arrival, job] : *order) jobs_.erase(job->request);
  }
  lane.by_deadline.clear();
  lane.by_latest_start.clear();
  lane.by_rank.clear();
  lane.hurried_work.clear();
  lane.unhurried_work.clear();
}

void Backlog::remeasure(RequestId request, Micros length) {
  WaitingJob& job = jobs_.at(request);
  Lane& lane = lanes_[job.prefill.model];
  if (job.prefill.has_deadline()) lane.by_latest_start.erase(key(job.latest_start(), job));
  job.length = length;
  if (job.prefill.has_deadline()) lane.by_latest_start.insert(key(job.latest_start(), job));
}

const WaitingJob* Backlog::find(RequestId request) const {
  const auto place = jobs_.find(request);
  return place == jobs_.end() ? nullptr : &place->second;
}

std::vector<ModelIndex> Backlog::waiting_models() const {
  std::vector<ModelIndex> models;
  for (ModelIndex model = 0; model < lanes_.size(); ++model) {
    if (size(model) > 0) models.push_back(model);
  }
  return models;
}

std::size_t Backlog::size(ModelIndex model) const {
  return lanes_[model].by_deadline.size() + lanes_[model].by_rank.size();
}

PrefillWork Backlog::work_due_by(ModelIndex model, Instant deadline) const {
  return lanes_[model].hurried_work.before({unsigned_order(deadline), arrivals_});
}

PrefillWork Backlog::work_up_to_rank(ModelIndex model, std::uint64_t rank) const {
  return lanes_[model].unhurried_work.before({rank, arrivals_});
}

const WaitingJob* Backlog::most_urgent(ModelIndex model) const {
  const auto& order = lanes_[model].by_latest_start;
  return order.empty() ? nullptr : std::get<2>(*order.begin());
}

std::vector<const WaitingJob*> Backlog::hurried(const std::vector<ModelIndex>& models,
                                                std::size_t jobs_max) const {
  std::vector<const std::set<Key>*> orders;
  for (ModelIndex model : models) orders.push_back(&lanes_[model].by_deadline);
  std::sort(orders.begin(), orders.end(), [](auto* a, auto* b) { return a->size() < b->size(); });
  std::vector<Key> keys;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const std::size_t share = (jobs_max - keys.size()) / (orders.size() - i);
    auto next = orders[i]->begin();
    for (std::size_t n = std::min(share, orders[i]->size()); n > 0; --n) keys.push_back(*next++);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<const WaitingJob*> jobs;
  for (const Key& k : keys) jobs.push_back(std::get<2>(k));
  return jobs;
}

std::vector<const WaitingJob*> Backlog::unhurried(const std::vector<ModelIndex>& models,
                                                  std::size_t jobs_max) const {
  struct Turn {
    Micros served;
    ModelIndex model;
    std::set<Key>::const_iterator next;
  };
  const auto later = [](const Turn& a, const Turn& b) {
    return std::tie(a.served, a.model) > std::tie(b.served, b.model);
  };
  std::priority_queue<Turn, std::vector<Turn>, decltype(later)> turns(later);
  for (ModelIndex model : models) {
    const Lane& lane = lanes_[model];
    if (!lane.by_rank.empty()) turns.push({lane.served, model, lane.by_rank.begin()});
  }
  std::vector<const WaitingJob*> jobs;
  while (!turns.empty() && jobs.size() < jobs_max) {
    Turn turn = turns.top();
    turns.pop();
    jobs.push_back(std::get<2>(*turn.next));
    turn.served += jobs.back()->length;
    if (++turn.next != lanes_[turn.model].by_rank.end()) turns.push(turn);
  }
  return jobs;
}

}  // namespace sangam
