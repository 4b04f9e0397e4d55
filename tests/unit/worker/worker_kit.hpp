// What the worker's tests share: a runner that is scripted letter by letter, and a desk around the core.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/worker/worker_core.hpp"

namespace sangam::worker_kit {

inline const ModelId kModel("A-arith");
inline const ModelId kOther("A-date");
inline const ActorName kGateway("gateway/1");
inline const ActorName kScheduler("scheduler");
inline const ActorName kLifecycle("lifecycle");
inline const ActorName kQueue("queue/A-arith");

inline Instant at(std::int64_t micros) {
  return Instant(Micros(micros));
}

/// Does what the test says next, and remembers what it was asked.
class ScriptedRunner final : public Runner {
 public:
  struct State {
    std::map<ModelId, Error> broken;
    std::int64_t pool = 1000;                  ///< Bytes, of which each active model takes its size.
    std::map<ModelId, std::int64_t> sizes;     ///< 10 where it is not named.
    std::map<ModelId, Residency> residencies;  ///< Cold where it is not named.
    int pieces = 0;                            ///< Calls of `advance` before the one that ends a move.
    std::optional<Move> move;
    std::vector<ModelId> demoted;
    std::vector<std::string> notes;
    int abandoned = 0;
    Tokens kv_capacity{1000};
    Result<void> next_add;
    Result<void> next_take_over;
    std::vector<RequestId> prefilling;  ///< Added for others, and not let go.
    std::vector<HandOver> taken;
    std::vector<ReserveKv> begun;  ///< What the next `take_begun` says;
    bool begins = false;           ///< if so, each prompt for others, once.
    Result<void> next_reserve;
    std::vector<ReserveKv> set_aside;
    KvPulled pulled;
    std::vector<RequestId> live;
    std::vector<RequestId> cancelled;
    std::deque<StepOutcome> outcomes;
    std::map<ModelId, InstanceStatus> statuses;
    WorkerMemory memory;
  };

  explicit ScriptedRunner(State& state) : state_(state) {}

  Result<void> begin(const Move& move) override {
    const bool rises = move.target == Residency::active;
    if (rises && !would_fit(move.model, {})) return make_error(ErrorCode::exhausted, "no room");
    state_.move = move;
    left_ = state_.pieces;
    return {};
  }
  Result<bool> advance(bool) override {
    if (left_-- > 0) return false;
    const Move move = *state_.move;
    state_.move.reset();
    const auto broken = state_.broken.find(move.model);
    if (broken != state_.broken.end() && move.target != Residency::cold) return broken->second;
    state_.residencies[move.model] = move.target;
    return true;
  }
  void abandon() override {
    state_.move.reset();
    ++state_.abandoned;
  }
  std::vector<std::string> notes() const override { return state_.notes; }
  std::vector<Phase> phases() const override { return {{"copy", Micros{5}, Bytes{10}}}; }
  std::vector<ModelId> take_demoted() override { return std::exchange(state_.demoted, {}); }
  bool would_fit(const ModelId& model, std::span<const ModelId> asleep) const override {
    std::int64_t used = size(model);
    for (const auto& [other, residency] : state_.residencies) {
      const bool goes = std::find(asleep.begin(), asleep.end(), other) != asleep.end();
      if (residency == Residency::active && !goes && other != model) used += size(other);
    }
    return used <= state_.pool;
  }
  Footprint footprint(const ModelId& model) const override { return {Bytes{size(model)}, {}, {}, {}}; }
  WorkerMemory memory() const override { return state_.memory; }
  LoadedInstance instance(const ModelId&) const override { return {250.0, "abcd", {}}; }
  ModelTable table(const ModelId& model) const override {
    ModelTable table;
    table.model = model;
    table.kv_per_token = Bytes(4);
    table.segments = {{7, Bytes(size(model))}};
    return table;
  }
  Tokens kv_capacity(const ModelId&) const override { return state_.kv_capacity; }
  Result<void> add(const Run& run) override {
    if (!state_.next_add) return state_.next_add;
    state_.live.push_back(run.request);
    return {};
  }
  Result<void> add_prefill(const Run& run) override {
    state_.prefilling.push_back(run.request);
    if (state_.begins) {
      ReserveKv wish;
      wish.request = run.request;
      wish.tokens = Tokens(std::int64_t(run.prompt.size() + run.generated.size()));
      state_.begun.push_back(std::move(wish));
    }
    return add(run);
  }
  std::vector<ReserveKv> take_begun() override { return std::exchange(state_.begun, {}); }
  Result<KvPlace> kv_place(const Run& run) const override {
    return KvPlace{.kv_name = "weights", .isa = "avx2", .pages = {7}, .digest = std::to_string(run.generated.size())};
  }
  void let_go(RequestId request) override {
    forget(request);
    std::erase(state_.live, request);
  }
  Result<void> reserve_kv(const ReserveKv& wish) override {
    if (!state_.next_reserve) return state_.next_reserve;
    state_.set_aside.push_back(wish);
    return {};
  }
  KvPulled pull_kv() override { return state_.pulled; }
  void drop_kv(RequestId request) override {
    std::erase_if(state_.set_aside, [&](const ReserveKv& wish) { return wish.request == request; });
  }
  Result<void> take_over(const HandOver& offered) override {
    drop_kv(offered.run.request);
    if (!state_.next_take_over) return state_.next_take_over;
    state_.taken.push_back(offered);
    state_.live.push_back(offered.run.request);
    return {};
  }
  void cancel(RequestId request) override {
    std::erase(state_.live, request);
    forget(request);
    state_.cancelled.push_back(request);
  }
  bool has_work() const override { return !state_.live.empty(); }
  StepOutcome step() override {
    StepOutcome outcome = std::move(state_.outcomes.front());
    state_.outcomes.pop_front();
    for (const TokensProduced& produced : outcome.produced) {
      if (produced.finish != FinishReason::none) std::erase(state_.live, produced.request);
    }
    return outcome;
  }
  InstanceStatus status(const ModelId& model) const override {
    const auto status = state_.statuses.find(model);
    return status == state_.statuses.end() ? InstanceStatus{} : status->second;
  }

 private:
  void forget(RequestId request) {
    std::erase(state_.prefilling, request);
    std::erase_if(state_.begun, [&](const ReserveKv& wish) { return wish.request == request; });
  }
  std::int64_t size(const ModelId& model) const {
    const auto named = state_.sizes.find(model);
    return named == state_.sizes.end() ? 10 : named->second;
  }

  State& state_;
  int left_ = 0;
};

inline WorkerOptions options() {
  WorkerOptions options;
  options.name = ActorName("worker/1");
  options.incarnation = Incarnation{7};
  options.models = {{kModel, "unused"}, {kOther, "unused"}};
  options.running_max = 2;
  options.waiting_max = 1;
  return options;
}

/// A worker with its scripted runner, and what it last said.
struct Desk {
  explicit Desk(bool loaded = true, WorkerOptions as = options())
      : worker(std::move(as), std::make_unique<ScriptedRunner>(runner)) {
    worker.start(at(0), out);
    for (const ActorName& actor : {kScheduler, kGateway, kLifecycle}) worker.on(ActorFound{actor, Incarnation{1}}, at(0), out);
    if (loaded) finish_moves();
    out.clear();
  }

  /// One move, from its beginning to its end, when it comes in one piece.
  void move() {
    worker.step(at(0), out);
    worker.step(at(0), out);
  }
  void finish_moves(Instant now = at(0)) {
    while (worker.busy() && runner.live.empty()) worker.step(now, out);
  }

  template <class M>
  void hear(const M& message, Instant now = at(0)) {
    out.clear();
    worker.on(message, now, out);
  }
  void step(StepOutcome outcome, Instant now) {
    out.clear();
    runner.outcomes.push_back(std::move(outcome));
    worker.step(now, out);
  }

  /// The messages of one type, to one actor.
  template <class M>
  std::vector<M> said(const ActorName& to) const {
    std::vector<M> found;
    for (const Outbox::Letter& letter : out.letters) {
      if (const M* message = std::get_if<M>(&letter.message); message != nullptr && letter.to == to)
        found.push_back(*message);
    }
    return found;
  }

  ScriptedRunner::State runner;
  Outbox out;
  WorkerCore worker;
};

inline Run run_of(std::uint64_t request, Attempt attempt = 1, ModelId model = kModel) {
  Run run;
  run.request = RequestId{request};
  run.attempt = attempt;
  run.model = std::move(model);
  run.prompt = {1, 2, 3};
  run.tokens_to = kGateway;
  run.estimated = Micros(500);
  return run;
}

inline TokensProduced tokens(std::uint64_t request, std::uint64_t first, FinishReason finish = FinishReason::none) {
  TokensProduced produced;
  produced.request = RequestId{request};
  produced.first = first;
  produced.tokens = {TokenId(first)};
  produced.finish = finish;
  return produced;
}

}  // namespace sangam::worker_kit
