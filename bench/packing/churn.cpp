// Drives a PlacementCore with arrivals and departures, and counts what its plans say.
#include "bench/packing/churn.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "actors/placement/placement_core.hpp"

namespace sangam {
namespace {

constexpr int kModels = 240;
constexpr int kWorkers = 240;
constexpr std::int64_t kGigabyte = 1'000'000'000;
constexpr double kLifetime = 300.0;     // Seconds, mean, exponential.
constexpr double kBetween = 300.0 / 120.0;  // Seconds between arrivals, mean, exponential: 120 models at a time.
constexpr double kDuration = 1'800.0;

/// Milliseconds that this thread has worked.
double worked() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
}

class Churn {
 public:
  explicit Churn(const PlacementPolicy& policy) : core_(options(policy)) {
    for (int m = 0; m < kModels; ++m) {
      ModelTable table;
      table.model = model(m);
      // Every fourth model is a variant of the one before and shares 60 % of its bytes.
      const std::int64_t bytes = std::int64_t(2 + random_() % 15) * kGigabyte;
      table.segments = {{std::uint64_t(2 * m), Bytes(bytes * 4 / 10)},
                        {std::uint64_t(m % 4 == 3 ? 2 * m - 1 : 2 * m + 1), Bytes(bytes * 6 / 10)}};
      tell(table);
      forecasts_.push_back(forecast(m));
    }
    for (int w = 0; w < kWorkers; ++w) add_worker(w);
  }

  ChurnResult run() {
    double next_arrival = 1.0;
    int next_model = 0;
    std::multimap<double, int> departures;
    while (next_arrival < kDuration) {
      if (!departures.empty() && departures.begin()->first < next_arrival) {
        advance(departures.begin()->first);
        forecasts_[std::size_t(departures.begin()->second)].volatility = 100.0;  // No longer the pool's.
        departures.erase(departures.begin());
      } else {
        advance(next_arrival);
        while (forecasts_[std::size_t(next_model)].volatility < 2.0) next_model = (next_model + 1) % kModels;
        forecasts_[std::size_t(next_model)].volatility = 1.0;
        departures.emplace(next_arrival + exponential(kLifetime), next_model);
        ++arrivals_;
        next_arrival += exponential(kBetween);
      }
      Forecast all;
      all.models = forecasts_;
      const double start = worked();
      tell(all);
      decisions_.push_back(worked() - start);
    }
    std::sort(decisions_.begin(), decisions_.end());
    return {worker_seconds_ / kDuration, double(moves_) / double(arrivals_), overloaded_seconds_ / worker_seconds_,
            decisions_[decisions_.size() * 99 / 100]};
  }

 private:
  static PlacementOptions options(const PlacementPolicy& policy) {
    PlacementOptions options;
    options.tell = {ActorName("lifecycle")};
    options.policy = policy;
    options.settle = Millis(0);
    options.pools.size_enter = options.pools.size_leave = 0.9;
    options.pools.volatility_enter = options.pools.volatility_leave = 50.0;
    options.pools.peak_small = 0.0;
    options.pools.attainment_enter = options.pools.attainment_leave = 0.0;
    options.pools.enter_dwell = options.pools.leave_dwell = Millis(0);
    options.pools.idle_leave = Millis(3'600'000);
    options.busy_max = 1.0;
    return options;
  }
  static ModelId model(int m) { return ModelId("m" + std::to_string(m)); }

  double draw() { return double(random_() >> 11) * 0x1.0p-53; }
  double exponential(double mean) { return -mean * std::log(1.0 - draw()); }

  ModelForecast forecast(int m) {
    ModelForecast f;
    f.model = model(m);
    f.requests_per_second = 1.0;
    f.volatility = 100.0;
    f.kv = Bytes(std::int64_t((1.0 + 15.0 * draw()) * double(kGigabyte)));
    f.compute = 0.02 + 0.4 * draw();
    f.bandwidth = 0.02 + 0.4 * draw();
    f.input_tokens_per_second = 20'000.0 * f.compute;
    return f;
  }
  void add_worker(int w) {
    const ActorName name("worker/" + std::to_string(w));
    WorkerMemory memory;
    memory.worker = name;
    memory.pool = Bytes(60 * kGigabyte);
    tell(memory);
    Telemetry telemetry;
    telemetry.worker = name;
    tell(telemetry);
    for (int m = 0; m < kModels; ++m) {
      InstanceState state;
      state.worker = name;
      state.model = model(m);
      tell(state);
    }
  }
  template <class M>
  void tell(const M& message) {
    core_.on(message, now_, out_);
    collect();
  }
  void collect() {
    for (const auto& alarm : out_.alarms) timers_[alarm.timer] = alarm.at;
    for (const auto& letter : out_.letters) note(std::get<Plan>(letter.message));
    out_.clear();
  }
  void note(const Plan& plan) {
    std::map<ModelId, std::vector<ActorName>> places;
    for (const auto& instance : plan.instances) places[instance.model].push_back(instance.worker);
    for (const auto& [id, workers] : places) {
      const auto before = places_.find(id);
      if (before != places_.end() && before->second != workers) ++moves_;
    }
    places_ = std::move(places);
    std::map<ActorName, std::pair<double, double>> loads;
    for (const auto& [id, workers] : places_) {
      const ModelForecast& f = forecasts_[std::stoul(id.text().substr(1))];
      for (const ActorName& worker : workers) {
        loads[worker].first += f.compute / double(workers.size());
        loads[worker].second += f.bandwidth / double(workers.size());
      }
    }
    workers_ = double(loads.size());
    overloaded_ = double(std::count_if(loads.begin(), loads.end(), [](const auto& load) {
      return std::max(load.second.first, load.second.second) > 1.0 + 1e-6;
    }));
  }
  void pass(Instant until) {
    const double seconds = std::chrono::duration<double>(until - now_).count();
    worker_seconds_ += workers_ * seconds;
    overloaded_seconds_ += overloaded_ * seconds;
    now_ = until;
  }
  void advance(double seconds) {
    const Instant until{std::chrono::duration_cast<Micros>(std::chrono::duration<double>(seconds))};
    while (!timers_.empty()) {
      const auto [timer, due] = *std::min_element(timers_.begin(), timers_.end(),
                                                  [](const auto& a, const auto& b) { return a.second < b.second; });
      if (due > until) break;
      timers_.erase(timer);
      pass(std::max(due, now_));
      core_.wake(timer, now_, out_);
      collect();
    }
    pass(until);
  }

  std::mt19937_64 random_{3};
  PlacementCore core_;
  Outbox out_;
  Instant now_{};
  std::map<Timer, Instant> timers_;
  std::vector<ModelForecast> forecasts_;
  std::map<ModelId, std::vector<ActorName>> places_;
  std::vector<double> decisions_;
  std::size_t arrivals_ = 0;
  std::size_t moves_ = 0;
  double workers_ = 0.0;
  double overloaded_ = 0.0;
  double worker_seconds_ = 0.0;
  double overloaded_seconds_ = 0.0;
};

}  // namespace

ChurnResult churn(const PlacementPolicy& policy) { return Churn(policy).run(); }

}  // namespace sangam
