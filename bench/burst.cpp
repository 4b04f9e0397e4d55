// Four models on one worker burst in turn: who is on time when they share the KV pages, and who when each has a quarter?
//
// Both arms get the same requests at the same instants and the same number of KV pages. The engines compute; time is
// what their steps cost by a measurement at the start (a fixed part and one for each row), and jumps where nobody has
// work. So other load on the machine, which would hit one arm more than the other, changes nothing between them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/report.hpp"
#include "gpu/residency/loader.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"

using namespace sangam;

namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"A-arith", "A-roman", "A-date", "A-string"};
constexpr std::size_t kModels = kNames.size();
constexpr Bytes kPage{16 * 1024};
constexpr std::int64_t kSequences = 32;        ///< Of mean length, which all KV pages together hold.
constexpr std::int64_t kPrompt[] = {16, 64};   ///< Tokens, at least and at most.
constexpr std::int64_t kOutput[] = {64, 160};
constexpr std::int64_t kMeanTokens = 152;
constexpr double kSlot = 2.0;       ///< Seconds; one model's turn to burst, for half of it.
constexpr int kSlots = 8;
constexpr double kBurstLoad = 0.9;  ///< Of what the worker can do.
constexpr double kQuietLoad = 0.05;
constexpr std::size_t kTogether = 16;  ///< Requests whose cost is the measure of load.
constexpr double kDeadline = 0.1;   ///< Seconds to the first token, and for each token of the prompt:
constexpr double kDeadlinePerToken = 0.0002;

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "bench_burst: " << why << std::endl;
  std::exit(1);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

struct Arrival {
  double at = 0.0;
  std::size_t model = 0;
  Run run;
};

/// Seconds.
struct StepCost {
  double fixed = 0.0;
  double per_row = 0.0;
};

/// Rows that models have computed, also those of prompts that are computed again after a preemption.
class CountedModel final : public Model {
 public:
  CountedModel(std::unique_ptr<Model> inner, std::int64_t& rows) : inner_(std::move(inner)), rows_(rows) {}
  [[nodiscard]] const ModelConfig& config() const override { return inner_->config(); }
  [[nodiscard]] std::size_t kv_bytes_per_token() const override { return inner_->kv_bytes_per_token(); }
  [[nodiscard]] std::int64_t tokens_per_page(std::size_t page_bytes) const override {
    return inner_->tokens_per_page(page_bytes);
  }
  void forward(std::span<const SequenceSlice> slices, PageArena arena, std::span<float> logits,
               const LayerDone& layer_done) override {
    for (const SequenceSlice& slice : slices) rows_ += std::int64_t(slice.tokens.size());
    inner_->forward(slices, arena, logits, layer_done);
  }

 private:
  std::unique_ptr<Model> inner_;
  std::int64_t& rows_;
};

/// A pool with the weights of some models and so many pages for KV, and its engine.
struct Part {
  Part(const std::vector<std::size_t>& models, Pages kv_pages, Ops& ops) {
    Pages weights;
    {
      Part probe(models, Bytes{64 << 20}, ops);
      weights = probe.pool->ledger().weights;
    }
    build(models, Bytes((weights + kv_pages).count() * kPage.count()), ops);
  }
  Part(const std::vector<std::size_t>& models, Bytes bytes, Ops& ops) { build(models, bytes, ops); }

  void build(const std::vector<std::size_t>& models, Bytes bytes, Ops& ops) {
    pool = PagePool::create({bytes, kPage}).value();
    segments = std::make_unique<SegmentStore>(*pool);
    EngineOptions options;
    options.running_max = 64;  // pages decide, not places
    options.prefix_sharing = PrefixSharing::nobody;
    engine = std::make_unique<Engine>(options, *pool);
    for (const std::size_t model : models) {
      auto folder = load_folder(fs::path(SANGAM_SOURCE_DIR) / "models" / kNames[model], *segments, ops);
      if (!folder) give_up(folder.error().context);
      folder->loaded.model = std::make_unique<CountedModel>(std::move(folder->loaded.model), *rows);
      if (auto loaded = engine->load(ModelId(kNames[model]), std::move(folder->loaded)); !loaded)
        give_up(loaded.error().context);
    }
  }

  std::unique_ptr<std::int64_t> rows = std::make_unique<std::int64_t>(0);
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<SegmentStore> segments;
  std::unique_ptr<Engine> engine;
  double served = 0.0;  ///< Its share of the time so far, for fair turns between parts.
};

/// One part for all models, or one for each.
class Arm {
 public:
  /// Without a `cost`, time is the processor's.
  Arm(bool is_shared, Pages kv_pages, Ops& ops, std::optional<StepCost> cost) : cost_(cost) {
    if (is_shared) parts_.emplace_back(std::vector<std::size_t>{0, 1, 2, 3}, kv_pages, ops);
    for (std::size_t model = 0; !is_shared && model < kModels; ++model)
      parts_.emplace_back(std::vector{model}, Pages(kv_pages.count() / std::int64_t(kModels)), ops);
  }

  /// Seconds from arrival to the first token, one an arrival.
  std::vector<double> first_tokens(const std::vector<Arrival>& arrivals) {
    std::vector<double> waits(arrivals.size(), -1.0);
    std::size_t next = 0;
    while (true) {
      for (; next < arrivals.size() && arrivals[next].at <= now_; ++next) add(arrivals[next]);
      Part* part = whose_turn();
      if (part == nullptr && next == arrivals.size()) return waits;
      if (part == nullptr) {
        now_ = arrivals[next].at;
        continue;
      }
      for (const TokensProduced& produced : step(*part)) {
        const std::size_t i = std::size_t(produced.request) - 1;
        if (waits[i] < 0.0) waits[i] = now_ - arrivals[i].at;
      }
    }
  }

  [[nodiscard]] double busy() const { return busy_; }
  /// Median of the seconds of steps with so many rows.
  [[nodiscard]] double step_of(std::int64_t rows) const {
    std::vector<double> times = steps_.at(rows);
    std::ranges::sort(times);
    return times[times.size() / 2];
  }
  [[nodiscard]] double now() const { return now_; }

 private:
  Part& part_of(std::size_t model) { return parts_.size() == 1 ? parts_[0] : parts_[model]; }

  void add(const Arrival& arrival) {
    Part& part = part_of(arrival.model);
    if (!part.engine->has_work()) {  // who was idle has saved nothing up
      for (const Part& other : parts_)
        if (other.engine->has_work()) part.served = std::max(part.served, other.served);
    }
    if (auto added = part.engine->add(arrival.run); !added) give_up(added.error().context);
  }

  Part* whose_turn() {
    Part* least = nullptr;
    for (Part& part : parts_) {
      if (part.engine->has_work() && (least == nullptr || part.served < least->served)) least = &part;
    }
    return least;
  }

  std::vector<TokensProduced> step(Part& part) {
    const double began = processor_seconds();
    *part.rows = 0;
    StepReport report = part.engine->step();
    const double measured = processor_seconds() - began;
    steps_[*part.rows].push_back(measured);
    const double took = cost_ ? cost_->fixed + cost_->per_row * double(*part.rows) : measured;
    part.engine->charge(Micros(std::int64_t(took * 1e6)));
    part.served += took;
    busy_ += took;
    now_ += took;
    return std::move(report.produced);
  }

  std::vector<Part> parts_;
  std::optional<StepCost> cost_;
  std::map<std::int64_t, std::vector<double>> steps_;  ///< By rows.
  double now_ = 0.0;
  double busy_ = 0.0;
};

Run run_of(std::uint64_t number, std::size_t model, std::mt19937_64& random) {
  const auto between = [&](const std::int64_t (&range)[2]) {
    return std::uniform_int_distribution<std::int64_t>(range[0], range[1])(random);
  };
  Run run;
  run.request = RequestId{number};
  run.model = ModelId(kNames[model]);
  run.prompt.resize(std::size_t(between(kPrompt)));
  for (TokenId& token : run.prompt) token = TokenId(std::uniform_int_distribution<int>('0', 'z')(random));
  run.sampling.temperature = 0.0;
  run.sampling.max_tokens = Tokens{between(kOutput)};
  run.sampling.ignore_eos = true;
  return run;
}

/// Poisson, with a rate that depends on whose turn it is. `cost`: seconds of the worker for one request.
std::vector<Arrival> arrivals_of(double cost, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Arrival> arrivals;
  for (std::size_t model = 0; model < kModels; ++model) {
    for (double at = 0.0;;) {
      // By thinning (Lewis and Shedler, 1979): at the highest rate, of which some are left out.
      at += std::exponential_distribution<double>(kBurstLoad / cost)(random);
      if (at >= kSlot * kSlots) break;
      const int slot = int(at / kSlot);
      const bool bursts = std::size_t(slot) % kModels == model && at - slot * kSlot < kSlot / 2;
      const double kept = bursts ? 1.0 : kQuietLoad / kBurstLoad;
      if (std::uniform_real_distribution<double>(0.0, 1.0)(random) < kept) arrivals.push_back({at, model, {}});
    }
  }
  std::ranges::sort(arrivals, {}, &Arrival::at);
  for (std::size_t i = 0; i < arrivals.size(); ++i) arrivals[i].run = run_of(i + 1, arrivals[i].model, random);
  return arrivals;
}

/// Several requests at once, done.
Arm after(std::size_t requests, Pages kv_pages, Ops& ops, std::optional<StepCost> cost) {
  std::mt19937_64 random(0);
  std::vector<Arrival> arrivals;
  for (std::size_t i = 0; i < requests; ++i) arrivals.push_back({0.0, 0, run_of(i + 1, 0, random)});
  Arm arm(true, kv_pages, ops, cost);
  arm.first_tokens(arrivals);
  return arm;
}

StepCost measured_cost(Pages kv_pages, Ops& ops) {
  const double one = after(1, kv_pages, ops, {}).step_of(1);
  const double all = after(kTogether, kv_pages, ops, {}).step_of(kTogether);
  if (all <= one) give_up("a step of 16 rows took no longer than one of 1: the machine is too busy to measure");
  const double per_row = (all - one) / double(kTogether - 1);
  return {std::max(one - per_row, 0.0), per_row};
}

Pages pages_of_mean_sequences(Ops& ops) {
  const Part probe({0}, Bytes{16 << 20}, ops);
  const Pages free = probe.pool->ledger().free;
  const double tokens_a_page = double(probe.engine->kv_capacity(ModelId(kNames[0])).count()) / double(free.count());
  const auto a_sequence = std::int64_t(std::ceil(double(kMeanTokens) / tokens_a_page));
  return Pages(a_sequence * kSequences);
}

struct Outcome {
  double on_time = 0.0;  ///< Per cent.
  double p99 = 0.0;      ///< Milliseconds.
  double busy = 0.0;     ///< Per cent.
};

Outcome outcome_of(Arm arm, const std::vector<Arrival>& arrivals) {
  std::vector<double> waits = arm.first_tokens(arrivals);
  std::size_t on_time = 0;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] < 0.0) give_up("request " + std::to_string(i + 1) + " has ended without a token");
    on_time += waits[i] <= kDeadline + kDeadlinePerToken * double(arrivals[i].run.prompt.size());
  }
  std::ranges::sort(waits);
  const double p99 = waits[std::size_t(std::ceil(0.99 * double(waits.size()))) - 1];
  return {100.0 * double(on_time) / double(waits.size()), p99 * 1e3, 100.0 * arm.busy() / arm.now()};
}

std::uint64_t seed_of(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--seed") return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report(argc, argv);
  const std::uint64_t seed = seed_of(argc, argv);
  const auto ops = make_cpu_ops({.threads = 1}).value();
  const Pages kv_pages = pages_of_mean_sequences(*ops);
  const StepCost step = measured_cost(kv_pages, *ops);
  const double cost = after(kTogether, kv_pages, *ops, step).busy() / double(kTogether);
  const std::vector<Arrival> arrivals = arrivals_of(cost, seed);
  const Outcome apart = outcome_of(Arm(false, kv_pages, *ops, step), arrivals);
  const Outcome shared = outcome_of(Arm(true, kv_pages, *ops, step), arrivals);

  const std::string setting = std::to_string(arrivals.size()) + " requests, seed " + std::to_string(seed) + ", " +
                              std::to_string(kv_pages.count()) + " KV pages";
  report.row({"a step: fixed part", step.fixed * 1e3, "ms", setting, "", true});
  report.row({"a step: each row", step.per_row * 1e3, "ms", setting, "", true});
  report.row({"what one request costs among 16", cost * 1e3, "ms", setting, "", true});
  report.row({"worker busy, a quarter each", apart.busy, "%", setting, "", true});
  report.row({"worker busy, shared pages", shared.busy, "%", setting, "", true});
  report.row({"first token on time, a quarter each", apart.on_time, "%", setting, "", true});
  const std::string quarter = "a quarter each: " + Report::number(apart.on_time) + " %";
  report.row({"first token on time, shared pages", shared.on_time, "%", quarter, ">= a quarter each",
              shared.on_time >= apart.on_time});
  report.row({"P99 TTFT, a quarter each", apart.p99, "ms", "Janus: 2300 to 4400 ms", "", true});
  report.row({"P99 TTFT, shared pages", shared.p99, "ms", "Janus: 82 to 91 ms", "", true});
  const double ratio = shared.p99 / apart.p99;
  report.row({"P99 TTFT, shared by a quarter each", ratio, "", "Janus: 0.02 to 0.04", "<= 0.5", ratio <= 0.5});
}
