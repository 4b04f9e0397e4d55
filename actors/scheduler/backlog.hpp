// The requests that wait for a worker, in the orders in which the scheduler asks for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "actors/scheduler/plan.hpp"
#include "actors/scheduler/work_order.hpp"
#include "messages/vocabulary/request.hpp"

namespace sangam {

struct WaitingJob {
  RequestId request{};
  Attempt attempt = 1;
  Tokens output_max{0};
  std::uint64_t rank = 0;  ///< The queue's order among what has no deadline.
  PrefillJob prefill;
  Micros length{0};  ///< On the model's fastest instance, as far as known when it came.

  /// After this, not even the fastest instance can make it. Only with a deadline.
  [[nodiscard]] Instant latest_start() const { return prefill.deadline - length; }
};

/// Whoever allows more than a year gets a year: the sum with the clock must not overflow.
[[nodiscard]] inline Instant deadline_in(Millis ttft, Instant now) {
  return now + std::clamp(ttft, Millis(0), Millis(std::chrono::hours(24 * 365)));
}

/// Every change costs O(log n). Bounded by the admission limits of the queues that fill it.
class Backlog {
 public:
  /// Models are counted up; all others must be below `models`.
  void resize(ModelIndex models) { lanes_.resize(models); }

  /// Fills in `arrival` and `turn`. The request must not be waiting yet.
  void add(WaitingJob job);
  void remove(RequestId request);
  void remove_all(ModelIndex model);
  /// What the fastest instance is known to take has changed.
  void remeasure(RequestId request, Micros length);
  /// The same for all jobs of a model: `length(prefill)` gives each its length.
  template <class Length>
  void remeasure_all(ModelIndex model, Length length);
  /// A job without a deadline was dispatched: its model's turn is over by so much.
  void served(ModelIndex model, Micros time) { lanes_[model].served += time; }

  [[nodiscard]] const WaitingJob* find(RequestId request) const;
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] std::size_t size(ModelIndex model) const;
  /// Those of which something waits.
  [[nodiscard]] std::vector<ModelIndex> waiting_models() const;
  [[nodiscard]] bool has_unhurried(ModelIndex model) const { return !lanes_[model].by_rank.empty(); }
  /// The job whose latest start comes first; null where no job of the model has a deadline.
  [[nodiscard]] const WaitingJob* most_urgent(ModelIndex model) const;

  /// What waits for the model with a deadline up to this one, O(log n); with any; without.
  [[nodiscard]] PrefillWork work_due_by(ModelIndex model, Instant deadline) const;
  [[nodiscard]] PrefillWork hurried_work(ModelIndex model) const { return lanes_[model].hurried_work.all(); }
  [[nodiscard]] PrefillWork unhurried_work(ModelIndex model) const { return lanes_[model].unhurried_work.all(); }
  /// What waits without a deadline and with a rank up to this one, O(log n).
  [[nodiscard]] PrefillWork work_up_to_rank(ModelIndex model, std::uint64_t rank) const;

  /// Jobs with a deadline of the given models, earliest first, at most `jobs_max`. When there are more, each
  /// model gives its earliest, and those with few jobs give all: no model is hidden behind another's crowd.
  [[nodiscard]] std::vector<const WaitingJob*> hurried(const std::vector<ModelIndex>& models,
                                                       std::size_t jobs_max) const;
  /// Jobs without a deadline, at most `jobs_max`: within a model by rank, between models the one that was
  /// served least goes first.
  [[nodiscard]] std::vector<const WaitingJob*> unhurried(const std::vector<ModelIndex>& models,
                                                         std::size_t jobs_max) const;

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, const WaitingJob*>;  // Order, arrival, job.

  /// What waits for one model.
  struct Lane {
    std::set<Key> by_deadline;
    std::set<Key> by_latest_start;  // The same jobs.
    std::set<Key> by_rank;          // Those without a deadline.
    WorkOrder hurried_work;         // As by_deadline.
    WorkOrder unhurried_work;       // As by_rank.
    std::uint64_t turns = 0;
    Micros served{0};
  };

  static Key key(std::uint64_t order, const WaitingJob& job) { return {order, job.prefill.arrival, &job}; }
  static Key key(Instant order, const WaitingJob& job) { return key(unsigned_order(order), job); }
  /// The sign bit is turned, so that instants before the clock's origin come first also as unsigned numbers.
  static std::uint64_t unsigned_order(Instant at) {
    return std::uint64_t(at.time_since_epoch().count()) ^ (std::uint64_t{1} << 63);
  }
  static WorkOrder::Key work_key(const WaitingJob& job) {
    return {job.prefill.has_deadline() ? unsigned_order(job.prefill.deadline) : job.rank, job.prefill.arrival};
  }

  void start_share(Lane& lane);

  std::unordered_map<RequestId, WaitingJob> jobs_;
  std::vector<Lane> lanes_;  // By ModelIndex.
  std::uint64_t arrivals_ = 0;
};

template <class Length>
void Backlog::remeasure_all(ModelIndex model, Length length) {
  Lane& lane = lanes_[model];
  lane.by_latest_start.clear();
  for (const auto* order : {&lane.by_deadline, &lane.by_rank}) {
    for (const auto& [position, arrival, job] : *order) {
      WaitingJob& own = jobs_.at(job->request);
      own.length = length(own.prefill);
      if (own.prefill.has_deadline()) lane.by_latest_start.insert(key(own.latest_start(), own));
    }
  }
}

}  // namespace sangam
