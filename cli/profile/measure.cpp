// Loads out, counts in, costs from both.
#include "cli/profile/measure.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>

#include "cli/answers.hpp"
#include "cli/load_client.hpp"
#include "cli/offered_models.hpp"
#include "cli/profile/snapshot_change.hpp"
#include "cli/replay_answer.hpp"
#include "cli/signals.hpp"

namespace sangam {
namespace {

constexpr Millis kAnswerWithin{300'000};  // A large model may have to be read from storage first.
constexpr Millis kLook{20};
constexpr Millis kTellsWithin{5'000};
constexpr std::size_t kSamplesLeast = 20;

struct SeenByClient {
  Micros first{0};  ///< Until the first token,
  Micros rest{0};   ///< and from there to the last one.
};

/// Requests of one point, all at once.
class Burst final : public LoadSource {
 public:
  Burst(const GridPoint& point, std::string model, std::string key, std::uint64_t seed)
      : point_(point), model_(std::move(model)), key_(std::move(key)), seed_(seed) {}

  std::size_t count() const override { return std::size_t(point_.streams); }
  Micros due(std::size_t) const override { return Micros(0); }
  LoadRequest request(std::size_t call) override {
    const sim::TraceRequest asked{Micros(0), 0, point_.input, point_.output};
    open_.try_emplace(call, asked, sim::Slo{});
    LoadRequest message{"/v1/completions", completion_body(model_, asked, seed_ + call), {}};
    if (!key_.empty()) message.headers.emplace_back("Authorization", "Bearer " + key_);
    return message;
  }
  void on_status(std::size_t call, int status) override { open_.at(call).on_status(status); }
  void on_body(std::size_t call, std::string_view piece, Micros now) override { open_.at(call).on_body(piece, now); }
  void on_end(std::size_t call, const std::optional<Error>& failure, Micros now) override {
    ReplayAnswer& answer = open_.at(call);
    const sim::RequestRecord record = answer.end(failure, now);
    if (record.code == ErrorCode::none) seen_ = {record.ttft, record.end - record.arrival - record.ttft};
    if (problem_.empty() && record.code != ErrorCode::none)
      problem_ = !answer.problem().empty() ? answer.problem() : failure ? failure->context : "the answer broke off";
    open_.erase(call);
  }
  bool on_tick(const LoadProgress&) override {
    stopped_ |= wait_for_signal(Millis(0)).has_value();
    return !stopped_;
  }

  [[nodiscard]] const SeenByClient& seen() const { return seen_; }  ///< Of the last one that ended.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  GridPoint point_;
  std::string model_;
  std::string key_;
  std::uint64_t seed_;
  std::map<std::size_t, ReplayAnswer> open_;
  SeenByClient seen_;
  std::string problem_;
  bool stopped_ = false;
};

std::string now_text() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

Error broken_off() { return make_error(ErrorCode::cancelled, "broken off; nothing is stored"); }

class GridWalk {
 public:
  GridWalk(const HttpBase& base, const ModelId& model, const MeasureOptions& options)
      : base_(base), model_(model), options_(options) {}

  Result<Profile> run() {
    if (auto woken = wake(); !woken) return woken.error();
    GridLimits limits;
    limits.context = context_;
    limits.streams = options_.streams;
    limits.workers = workers_ = std::max<std::int64_t>(1, holders());
    const std::vector<GridPoint> grid = grid_of(limits);
    const double all = double(grid.size()) * double(options_.rounds);
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      for (const GridPoint& point : grid) {
        if (auto done = take(point); !done) return done.error();
        if (options_.progress) options_.progress(++done_ / all);
      }
    }
    return profile();
  }

 private:
  /// After a request, it is active somewhere.
  Result<void> wake() {
    const auto offered = offered_models(base_, options_.key);
    if (!offered) return offered.error().code == ErrorCode::unavailable ? no_mesh(offered.error()) : offered.error();
    std::string names;
    bool is_there = false;
    for (const MeshModel& model : *offered) {
      names += (names.empty() ? "" : ", ") + model.id;
      if (model.id != model_.text()) continue;
      context_ = model.context;
      is_there = true;
    }
    if (!is_there) return make_error(ErrorCode::invalid_input, "'" + model_.text() + "' is no model of this mesh; it has " + names);
    if (auto sent = send({1, Tokens(8), Tokens(2)}); !sent) return sent.error();
    // A mesh that has just begun tells nothing of its workers yet.
    const auto end = std::chrono::steady_clock::now() + kTellsWithin;
    while (holders() == 0 && std::chrono::steady_clock::now() < end) {
      auto seen = take_snapshot(base_, options_.key);
      if (!seen) return seen.error();
      auto settled = told_after(*seen);
      if (!settled) return settled.error();
      last_ = std::move(*settled);
    }
    if (holders() == 0)
      return make_error(ErrorCode::unavailable, "no worker tells of '" + model_.text() + "'; keep it active with `sangam ctl wake " + model_.text() + " --pin`");
    return {};
  }

  [[nodiscard]] std::int64_t holders() const {
    return std::count_if(last_.workers.begin(), last_.workers.end(), [&](const SnapshotWorker& worker) {
      const SnapshotInstance* instance = worker.find(model_);
      return instance != nullptr && instance->active;
    });
  }

  /// What the last one to end saw.
  Result<SeenByClient> send(const GridPoint& point) {
    Burst burst(point, model_.text(), options_.key, options_.seed + 1'000'000 * ++sent_);
    const auto load = run_load(base_, burst, kAnswerWithin);
    if (!load) return no_mesh(load.error());
    if (burst.stopped()) return broken_off();
    if (!burst.problem().empty())
      return make_error(ErrorCode::unavailable, model_.text() + ": " + burst.problem() + "; is the mesh idle? --streams asks for less at once");
    return burst.seen();
  }

  /// What the workers tell once all that had ended by `seen` is in their counts: two letters later at most.
  Result<Snapshot> told_after(const Snapshot& seen) {
    const auto end = std::chrono::steady_clock::now() + kTellsWithin;
    while (std::chrono::steady_clock::now() < end) {
      if (wait_for_signal(kLook)) return broken_off();
      auto next = take_snapshot(base_, options_.key);
      if (!next) return next.error();
      if (has_told_since(seen, *next)) return next;
    }
    return make_error(ErrorCode::unavailable, "the workers tell nothing; look at `sangam ctl snapshot` and their logs");
  }

  Result<void> take(const GridPoint& point) {
    const bool alone = point.streams == 1 && point.output == Tokens(1);
    for (int i = 0; i < (alone ? kPromptsInRow : 1); ++i) {
      const auto seen = send(point);
      if (!seen) return seen.error();
      if (alone) first_tokens_.push_back({double(point.input.count()), double(seen->first.count())});
    }
    if (!alone && point.streams <= workers_) {
      if (auto stream = follow({1, point.input, point.output}); !stream) return stream;
    }
    const auto seen = take_snapshot(base_, options_.key);
    if (!seen) return seen.error();
    auto told = told_after(*seen);
    if (!told) return told.error();
    for (const WorkSample& sample : work_between(last_, *told, model_, point.input)) samples_.push_back(sample);
    last_ = std::move(*told);
    return {};
  }

  /// One stream alone, for the time between its tokens.
  Result<void> follow(const GridPoint& point) {
    const auto seen = send(point);
    if (!seen) return seen.error();
    const double later = double(point.output.count() - 1);
    if (later > 0.0) streams_.push_back({double(point.input.count()) + later / 2.0, double(seen->rest.count()) / later});
    return {};
  }

  Result<Profile> profile() {
    if (samples_.size() < kSamplesLeast) {
      return make_error(ErrorCode::unavailable, "only " + std::to_string(samples_.size()) + " of the samples are of '" + model_.text() +
                                                    "' alone; measure while the mesh serves nothing else, or with more --rounds");
    }
    Profile profile;
    profile.model = model_;
    profile.measured = now_text() + " at " + base_.host + ":" + base_.port;
    if (const SnapshotModel* model = last_.find(model_)) {
      profile.devices = model->devices;
      profile.weights = model->weights;
      profile.kv_per_token = model->kv_per_token;
    }
    profile.samples = samples_;
    profile.costs = fit_costs(samples_, options_.seed);
    // What clients see beside the steps: of later tokens first, as a first token waits for the worker's gap too.
    profile.between_steps_us = beside(streams_, profile.costs.step.value + profile.costs.sequence.value, profile.costs.context_token.value);
    profile.request_us = beside(first_tokens_, profile.spec().prefill_fixed, profile.costs.prompt_token.value);
    return profile;
  }

  static constexpr int kPromptsInRow = 6;
  struct Seen {
    double tokens;  ///< Of the prompt, or of the context of a mean step.
    double took;    ///< Microseconds.
  };

  /// The median of what is not explained; not below 0.
  static double beside(const std::vector<Seen>& all, double fixed, double per_token) {
    if (all.empty()) return 0.0;
    std::vector<double> rest;
    for (const Seen& seen : all) rest.push_back(seen.took - fixed - per_token * seen.tokens);
    std::nth_element(rest.begin(), rest.begin() + std::ptrdiff_t(rest.size() / 2), rest.end());
    return std::max(0.0, rest[rest.size() / 2]);
  }

  const HttpBase& base_;
  const ModelId& model_;
  const MeasureOptions& options_;
  Tokens context_{0};
  std::int64_t workers_ = 1;
  Snapshot last_;
  std::uint64_t sent_ = 0;
  double done_ = 0.0;
  std::vector<WorkSample> samples_;
  std::vector<Seen> first_tokens_;
  std::vector<Seen> streams_;
};

}  // namespace

Result<Profile> measure(const HttpBase& base, const ModelId& model, const MeasureOptions& options) {
  return GridWalk(base, model, options).run();
}

}  // namespace sangam
