// Random worlds around the scheduler: whatever happens, its promises hold. A failure prints the seed; the
// world of a seed is the same on every run.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "actors/scheduler/scheduler_core.hpp"

using namespace sangam;

namespace {

struct Task {
  Attempt attempt = 1;
  ModelId model;
  bool hurried = false;
  std::int64_t tokens = 0;
  bool waiting = true;
  ActorName worker;  // Where it runs; empty: nowhere.
  bool prefilled = false;
};

/// Queues and workers that do random things, in time that only goes forward.
class World {
 public:
  World(std::uint64_t seed, const char* policy) : random_(seed), core_(options(policy, seed)) {
    for (int w = 0; w < 4; ++w) restart(w);
  }

  void step() {
    now_ += Micros(std::int64_t(draw(4000)));
    if (alarm_ <= now_) {
      alarm_ = Instant::max();
      act([&](Outbox& out) { core_.wake(Timer{1}, now_, out); });
    }
    const std::uint64_t what = draw(100);
    if (what < 40) {
      enqueue();
    } else if (what < 70) {
      finish_prefill();
    } else if (what < 90) {
      end_run();
    } else if (what < 95) {
      withdraw();
    } else if (what < 97) {
      lose(int(draw(4)));
    } else {
      restart(int(draw(4)));
    }
    check_epdt();
  }

  /// Nothing new comes and workers do their work: everything must have ended after a while.
  void settle() {
    for (int w = 0; w < 4; ++w) restart(w);
    for (int i = 0; i < 20'000 && !tasks_.empty(); ++i) {
      now_ += Micros(500);
      if (alarm_ <= now_) {
        alarm_ = Instant::max();
        act([&](Outbox& out) { core_.wake(Timer{1}, now_, out); });
      }
      finish_prefill();
      end_run();
    }
  }

  [[nodiscard]] std::size_t unfinished() const { return tasks_.size(); }
  [[nodiscard]] std::size_t waiting_there() const { return core_.waiting(); }
  [[nodiscard]] std::size_t dispatched() const { return dispatched_; }

 private:
  static constexpr std::int64_t kRunningMax = 3;

  static SchedulerOptions options(const char* policy, std::uint64_t seed) {
    SchedulerOptions options;
    options.policy = dispatch_policy(policy).value();
    options.seed = seed;
    options.prompt_jobs_max = 4;
    return options;
  }

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  static ActorName worker(int w) { return ActorName("worker/" + std::to_string(w)); }
  static ModelId model(int m) { return ModelId("m" + std::to_string(m)); }

  template <class Act>
  void act(Act act) {
    Outbox out;
    act(out);
    for (const Outbox::Alarm& alarm : out.alarms) {
      if (alarm.timer == Timer{1}) alarm_ = alarm.at;  // The other one repeats what is wanted.
    }
    for (const Outbox::Letter& letter : out.letters) receive(letter);
  }
  template <class Fact>
  void tell(const Fact& fact) {
    act([&](Outbox& out) { core_.on(fact, now_, out); });
  }

  /// The queue's side: every promise about dispatches is checked here.
  void receive(const Outbox::Letter& letter) {
    if (std::holds_alternative<Wanted>(letter.message)) return;
    if (const auto* quoted = std::get_if<Quoted>(&letter.message)) {
      const auto task = tasks_.find(quoted->request);
      REQUIRE(task != tasks_.end());
      REQUIRE(task->second.waiting);
      REQUIRE(quoted->attempt == 1);
      REQUIRE(quoted->earliest >= Millis(0));
      REQUIRE(quoted->latest >= std::max(quoted->earliest, Millis(1)));
      REQUIRE(letter.to == queue_of(task->second.model));
      return;
    }
    if (const auto* late = std::get_if<CannotBeOnTime>(&letter.message)) {
      const auto task = tasks_.find(late->request);
      REQUIRE(task != tasks_.end());
      REQUIRE(task->second.hurried);
      REQUIRE(task->second.waiting);
      REQUIRE(late->earliest_in >= Millis(0));
      tasks_.erase(task);
      return;
    }
    const auto& dispatch = std::get<Dispatch>(letter.message);
    const auto task = tasks_.find(dispatch.request);
    REQUIRE(task != tasks_.end());
    REQUIRE(task->second.waiting);  // Never an attempt twice.
    REQUIRE(dispatch.attempt == task->second.attempt);
    REQUIRE(letter.to == queue_of(task->second.model));
    REQUIRE(held_[dispatch.worker].contains(task->second.model));
    REQUIRE(dispatch.estimated > Micros(0));
    task->second.waiting = false;
    task->second.worker = dispatch.worker;
    ++dispatched_;
    REQUIRE(running_on(dispatch.worker) <= kRunningMax);
  }

  std::int64_t running_on(const ActorName& name) const {
    return std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& t) { return t.second.worker == name; });
  }

  void send(RequestId id, const Task& task) {
    tell(Enqueued{id, task.attempt, task.model, task.hurried ? ServiceClass::deadline : ServiceClass::normal,
                  draw(1000), Millis(std::int64_t(draw(400))), false, Tokens(task.tokens), Tokens(50)});
  }

  void enqueue() {
    const RequestId id{next_++};
    Task& task = tasks_[id];
    task.model = model(int(draw(3)));
    task.hurried = draw(3) != 0;
    task.tokens = std::int64_t(1 + draw(60));
    send(id, task);
  }

  template <class Wanted>
  std::map<RequestId, Task>::iterator pick(Wanted wanted) {
    std::vector<std::map<RequestId, Task>::iterator> found;
    for (auto t = tasks_.begin(); t != tasks_.end(); ++t) {
      if (wanted(t->second)) found.push_back(t);
    }
    return found.empty() ? tasks_.end() : found[draw(found.size())];
  }

  void finish_prefill() {
    const auto t = pick([](const Task& task) { return !task.worker.empty() && !task.prefilled; });
    if (t == tasks_.end()) return;
    t->second.prefilled = true;
    const Micros measured(std::int64_t(1 + draw(std::uint64_t(2000 * t->second.tokens))));
    tell(PrefillFinished{t->first, t->second.attempt, t->second.worker, t->second.model, Micros(0), measured,
                         Tokens(std::int64_t(draw(std::uint64_t(t->second.tokens) + 1)))});
  }

  void end_run() {
    const auto t = pick([](const Task& task) { return !task.worker.empty(); });
    if (t == tasks_.end()) return;
    const RunEnded ended{t->first,        t->second.attempt,  t->second.worker,
                         t->second.model, FinishReason::stop, Tokens(1)};
    tasks_.erase(t);
    tell(ended);
  }

  void withdraw() {
    const auto t = pick([](const Task& task) { return task.waiting; });
    if (t == tasks_.end()) return;
    const Withdrawn withdrawn{t->first, t->second.model};
    tasks_.erase(t);
    tell(withdrawn);
  }

  /// The worker dies; its queues send what it ran again, one attempt higher.
  void lose(int w) {
    held_[worker(w)].clear();
    std::vector<RequestId> again;
    for (auto& [id, task] : tasks_) {
      if (task.worker != worker(w)) continue;
      task.worker = ActorName();
      task.prefilled = false;
      task.waiting = true;
      ++task.attempt;
      again.push_back(id);
    }
    tell(ActorLost{worker(w), Incarnation{incarnation_}, "killed"});
    for (RequestId id : again) send(id, tasks_.at(id));
  }

  void restart(int w) {
    lose(w);
    ++incarnation_;
    for (int m = 0; m < 3; ++m) {
      if ((m + w) % 3 == 2) continue;
      held_[worker(w)].insert({model(m), true});
      tell(InstanceReady{worker(w), model(m), Incarnation{incarnation_}, kRunningMax, Tokens(400), 1000.0, ""});
    }
  }

  void check_epdt() const {
    for (const auto& [name, state] : core_.fleet().workers()) {
      REQUIRE(state.line.free_at(now_) >= now_);
      REQUIRE(state.running == running_on(name));
      REQUIRE(std::int64_t(state.line.size()) <= state.running);
      REQUIRE(state.kv_used >= -1e-9);
      REQUIRE((state.kv_used <= 1.0 + 1e-9 || state.running == 1));
    }
  }

  std::mt19937_64 random_;
  SchedulerCore core_;
  Instant now_{};
  Instant alarm_ = Instant::max();
  std::map<RequestId, Task> tasks_;
  std::map<ActorName, std::map<ModelId, bool>> held_;
  std::uint64_t next_ = 1;
  std::uint64_t incarnation_ = 0;
  std::size_t dispatched_ = 0;
};

}  // namespace

TEST_CASE("in random worlds no attempt is dispatched twice, no worker overfilled and no request forgotten") {
  std::size_t dispatched = 0;
  for (const char* policy : {"lst_imh", "edf", "fcfs", "round_robin", "least_loaded", "power_of_two"}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(policy);
      CAPTURE(seed);
      World world(seed, policy);
      for (int i = 0; i < 1500; ++i) world.step();
      world.settle();
      REQUIRE(world.unfinished() == 0);
      REQUIRE(world.waiting_there() == 0);
      dispatched += world.dispatched();
    }
  }
  MESSAGE(dispatched, " dispatches");
  CHECK(dispatched > 10'000);
}
