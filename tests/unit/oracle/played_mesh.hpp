// One model's clients, queue and workers, played step by step: what the oracle is held against. Knows nothing of the
// oracle's formulas.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <vector>

#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam::played {

/// What a step takes, in seconds, and what it uses.
struct StepLaw {
  double fixed = 0.01;
  double per_prompt_token = 1e-4;
  double per_sequence = 2e-4;
  double per_context = 1e-8;
  double noise = 0.05;  ///< Of the step's logarithm.
  double flop_per_token = 1.4e10;
  double weights = 1.4e10;  ///< Bytes.
  double kv_per_token = 1e5;
};

struct Device {
  double flop_per_second = 4e14;
  double bytes_per_second = 2e12;
  double page = 2 << 20;
};

/// How clients behave over time.
struct Demand {
  double rate = 5.0;       ///< Requests a second in the mean.
  double period = 600.0;   ///< Seconds of the tide, which is 60 % up and down.
  double input = 800.0;    ///< Tokens, lognormal.
  double input_spread = 0.8;
  double output = 60.0;
  double output_spread = 0.8;
  double ttft_fixed = 0.4;  ///< Deadline of the first token: so much and
  double ttft_per_token = 4e-4;
  double tpot = 0.06;
  double burst_every = 150.0;  ///< Mean seconds from one burst to the next.
  std::uint64_t bursts = 1;  ///< Seed of when bursts come; the other seed is of everything else.
};

/// First tokens of requests by when they came.
struct Window {
  double requests = 0.0;
  double on_time = 0.0;
};

class PlayedMesh {
 public:
  PlayedMesh(const ModelId& model, const StepLaw& law, const Device& device, const Demand& demand, std::uint64_t seed);

  /// Plays until `until`, in seconds.
  void play(double until);
  void set_workers(int count);
  [[nodiscard]] int workers() const { return int(serving_.size()); }
  /// Workers' time that the mean demand of now needs, for prompts and, roughly, for tokens.
  [[nodiscard]] double load() const;

  [[nodiscard]] QueueStatus queue_status();
  [[nodiscard]] std::vector<Telemetry> telemetry();
  [[nodiscard]] Served served();
  /// By 10 seconds, from the start.
  [[nodiscard]] const std::map<int, Window>& windows() const { return windows_; }

 private:
  struct Request {
    double came = 0.0;
    double deadline = 0.0;
    std::int64_t input = 0;
    std::int64_t output = 0;
    std::int64_t computed = 0;
    std::int64_t told = 0;
    double first = 0.0;
    std::int64_t late = 0;
    double ttft_slo = 0.0;
  };
  struct Worker {
    std::string name;
    double began = 0.0;
    bool working = false;
    std::vector<Request> prompt;  ///< None or one.
    std::int64_t chunk = 0;
    double took = 0.0;
    std::vector<Request> running;
    ModelLoad load;
    std::uint64_t steps = 0;
    double flop = 0.0;
    double read = 0.0;
    double told_at = 0.0;
    std::uint64_t sequence = 0;
  };

  [[nodiscard]] double rate(double at) const;
  void schedule_arrival();
  void arrive();
  void begin_step(int index);
  void end_step(int index);
  void token(Request& request);
  void end(const Request& request, ErrorCode code);
  void take_prompt(Worker& worker);
  void start_idle();

  ModelId model_;
  StepLaw law_;
  Device device_;
  Demand demand_;
  std::mt19937_64 random_;
  std::mt19937_64 bursts_;
  double now_ = 0.0;
  double next_arrival_ = 0.0;
  double burst_until_ = 0.0;
  double next_burst_ = 0.0;
  double burst_ = 1.0;
  std::map<int, Worker> workers_;
  std::set<int> serving_;
  int next_worker_ = 0;
  using Event = std::pair<double, int>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> steps_;
  std::multimap<double, Request> waiting_;  // By deadline.
  QueueStatus status_;
  std::vector<ServedRequest> served_;
  std::map<int, Window> windows_;
};

}  // namespace sangam::played
