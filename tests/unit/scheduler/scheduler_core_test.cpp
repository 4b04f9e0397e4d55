// The scheduler's rules, one by one, with literal times. An instance of these tests prefills 1,000 tokens a
// second, that is one token a millisecond, after an overhead that is set to one microsecond.
#include "actors/scheduler/scheduler_core.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

using namespace sangam;

namespace {

const ModelId kMed("med"), kLaw("law");
const ActorName kWorker1("worker/1"), kWorker2("worker/2");

Instant at(std::int64_t ms) { return Instant(Millis(ms)); }

SchedulerOptions options() {
  SchedulerOptions options;
  options.fleet.step_overhead = Micros(1);
  return options;
}

Enqueued hurried(std::uint64_t id, Attempt attempt, std::int64_t tokens, std::int64_t ttft_in,
                 const ModelId& model = kMed) {
  return {RequestId{id}, attempt, model, ServiceClass::deadline, 0, Millis(ttft_in), false,
          Tokens(tokens), Tokens(100)};
}

/// A scheduler, and what it has said since it was last asked.
class Mesh {
 public:
  explicit Mesh(SchedulerOptions options = ::options()) : core_(options) {}

  template <class Fact>
  void tell(std::int64_t ms, const Fact& fact) {
    tell(at(ms), fact);
  }
  template <class Fact>
  void tell(Instant now, const Fact& fact) {
    Outbox out;
    core_.on(fact, now, out);
    collect(out, now);
  }
  /// Lets the timer ring, if it is set for a moment up to `ms`.
  void pass(std::int64_t ms) {
    while (alarm_ <= at(ms)) {
      const Instant now = alarm_;
      alarm_ = Instant::max();
      Outbox out;
      core_.wake(Timer{1}, now, out);
      collect(out, now);
    }
  }

  /// Lets time pass up to `ms` with workers that take for each prefill exactly what was estimated.
  void work(std::int64_t ms) {
    for (;;) {
      const auto next = std::min_element(in_work_.begin(), in_work_.end(),
                                         [](const Work& a, const Work& b) { return a.end < b.end; });
      const Instant end = next == in_work_.end() ? Instant::max() : next->end;
      if (std::min(end, alarm_) > at(ms)) return;
      if (alarm_ < end) {
        pass(std::chrono::ceil<Millis>(alarm_.time_since_epoch()).count());
        continue;
      }
      const PrefillFinished finished = next->finished;
      in_work_.erase(next);
      tell(end, finished);
    }
  }

  void ready(std::int64_t ms, const ActorName& worker, const ModelId& model, std::int64_t running_max = 8,
             std::int64_t kv_capacity = 100'000) {
    tell(ms, InstanceReady{worker, model, Incarnation{1}, running_max, Tokens(kv_capacity), 1000.0, ""});
  }
  void enqueue(std::int64_t ms, std::uint64_t id, std::int64_t tokens, std::int64_t ttft_in,
               const ModelId& model = kMed) {
    tell(ms, hurried(id, 1, tokens, ttft_in, model));
  }
  void enqueue_unhurried(std::int64_t ms, std::uint64_t id, std::int64_t tokens, std::uint64_t rank,
                         const ModelId& model = kMed) {
    tell(ms, Enqueued{RequestId{id}, 1, model, ServiceClass::normal, rank, Millis(0), false, Tokens(tokens),
                      Tokens(100)});
  }
  void prefilled(std::int64_t ms, std::uint64_t id, std::int64_t tokens, const ActorName& worker = kWorker1,
                 const ModelId& model = kMed) {
    tell(ms, PrefillFinished{RequestId{id}, 1, worker, model, Micros(0), Millis(tokens) + Micros(1),
                             Tokens(tokens)});
  }
  void ended(std::int64_t ms, std::uint64_t id, const ActorName& worker = kWorker1, Attempt attempt = 1) {
    tell(ms, RunEnded{RequestId{id}, attempt, worker, kMed, FinishReason::stop, Tokens(1)});
  }

  /// "1>worker/1 2>late": requests dispatched or refused since the last call, in order.
  std::string said() {
    std::string text;
    for (const Outbox::Letter& letter : letters_) {
      if (!text.empty()) text += ' ';
      if (const auto* dispatch = std::get_if<Dispatch>(&letter.message)) {
        text += std::to_string(std::uint64_t(dispatch->request)) + ">" + dispatch->worker.text();
      } else if (const auto* late = std::get_if<CannotBeOnTime>(&letter.message)) {
        text += std::to_string(std::uint64_t(late->request)) + ">late";
      }
    }
    letters_.clear();
    return text;
  }
  /// "med:2": what the lifecycle was told since the last call, in order.
  std::vector<std::string> wants() { return std::exchange(wants_, {}); }
  [[nodiscard]] Instant wants_again() const { return wants_again_; }
  void repeat_wants(std::int64_t ms) {
    Outbox out;
    wants_again_ = Instant::max();
    core_.wake(kWants, at(ms), out);
    collect(out, at(ms));
  }
  [[nodiscard]] const Outbox::Letter& last_letter() const { return letters_.back(); }
  [[nodiscard]] Instant alarm() const { return alarm_; }
  [[nodiscard]] const SchedulerCore& core() const { return core_; }
  [[nodiscard]] Instant epdt(const ActorName& worker, std::int64_t ms) const {
    return core_.fleet().workers().at(worker).line.free_at(at(ms));
  }

 private:
  struct Work {
    Instant end;
    PrefillFinished finished;
  };

  void collect(const Outbox& out, Instant now) {
    for (const Outbox::Letter& letter : out.letters) {
      const auto* wanted = std::get_if<Wanted>(&letter.message);
      if (wanted == nullptr) {
        letters_.push_back(letter);
      } else {
        CHECK(letter.to == ActorName("lifecycle"));
        wants_.push_back(wanted->model.text() + ":" + std::to_string(wanted->waiting));
      }
    }
    for (const Outbox::Alarm& alarm : out.alarms) (alarm.timer == kWants ? wants_again_ : alarm_) = alarm.at;
    for (const Outbox::Letter& letter : out.letters) {
      if (const auto* d = std::get_if<Dispatch>(&letter.message)) begin(*d, letter.to, now);
    }
  }
  void begin(const Dispatch& d, const ActorName& queue, Instant now) {
    const ModelId model(queue.text().substr(std::string("queue/").size()));
    Instant& end = busy_until_[d.worker];
    end = std::max(end, now) + d.estimated;
    // One token takes a millisecond, as the prior says.
    const Tokens tokens(d.estimated / Millis(1));
    in_work_.push_back({end, {d.request, d.attempt, d.worker, model, d.estimated, d.estimated, tokens}});
  }

  SchedulerCore core_;
  static constexpr Timer kWants{2};
  std::vector<Outbox::Letter> letters_;
  std::vector<std::string> wants_;
  Instant wants_again_ = Instant::max();
  Instant alarm_ = Instant::max();
  std::map<ActorName, Instant> busy_until_;
  std::vector<Work> in_work_;
};

}  // namespace

TEST_CASE("a request for an idle worker is dispatched while it is being enqueued") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(5, 1, 100, 1000);
  REQUIRE(std::holds_alternative<Dispatch>(mesh.last_letter().message));
  const auto dispatch = std::get<Dispatch>(mesh.last_letter().message);
  CHECK(mesh.last_letter().to == ActorName("queue/med"));
  CHECK(dispatch.worker == kWorker1);
  CHECK(dispatch.attempt == 1);
  CHECK(dispatch.estimated == Micros(100'001));
  CHECK(mesh.core().waiting() == 0);
}

TEST_CASE("the next head goes out twenty milliseconds before its worker is expected to be free") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue_unhurried(0, 1, 100, 0);
  mesh.enqueue_unhurried(0, 2, 100, 1);
  CHECK(mesh.said() == "1>worker/1");
  CHECK(mesh.alarm() == at(80) + Micros(1));
  mesh.pass(80);
  CHECK(mesh.said() == "");
  mesh.pass(81);
  CHECK(mesh.said() == "2>worker/1");
}

TEST_CASE("a prefill that ends early lets the next one go at once") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(0, 2, 100, 1000);
  CHECK(mesh.said() == "1>worker/1");
  mesh.prefilled(30, 1, 100);
  CHECK(mesh.said() == "2>worker/1");
  CHECK(mesh.epdt(kWorker1, 30) > at(100));
  CHECK(mesh.epdt(kWorker1, 30) < at(131));
}

TEST_CASE("a prefill that ends late shifts the worker's availability by the delay") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(90, 2, 50, 1000);
  CHECK(mesh.said() == "1>worker/1 2>worker/1");
  CHECK(mesh.epdt(kWorker1, 90) == at(150) + Micros(2));
  mesh.prefilled(140, 1, 100);
  CHECK(mesh.epdt(kWorker1, 140) == at(190) + Micros(1));
}

TEST_CASE("a run that ends before its prefill gives its time back") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  CHECK(mesh.epdt(kWorker1, 10) == at(100) + Micros(1));
  mesh.ended(10, 1);
  CHECK(mesh.epdt(kWorker1, 10) == at(10));
}

TEST_CASE("all models of a worker share one availability") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.ready(0, kWorker1, kLaw);
  mesh.enqueue(0, 1, 100, 1000, kMed);
  mesh.enqueue(0, 2, 100, 1000, kLaw);
  CHECK(mesh.said() == "1>worker/1");
  mesh.pass(81);
  REQUIRE(std::holds_alternative<Dispatch>(mesh.last_letter().message));
  CHECK(mesh.last_letter().to == ActorName("queue/law"));
  CHECK(mesh.said() == "2>worker/1");
}

TEST_CASE("a worker with all its seats taken gets nothing until a run has ended") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 1);
  mesh.enqueue(0, 1, 10, 1000);
  mesh.enqueue(0, 2, 10, 1000);
  mesh.prefilled(10, 1, 10);
  mesh.pass(500);
  CHECK(mesh.said() == "1>worker/1");
  mesh.ended(500, 1);
  CHECK(mesh.said() == "2>worker/1");
}

TEST_CASE("a worker without KV for the next run gets nothing until a run has ended, and others are asked") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 8, 1000);
  mesh.enqueue_unhurried(0, 1, 500, 0);  // With 100 of output: 600 of 1,000.
  mesh.prefilled(10, 1, 500);
  mesh.enqueue_unhurried(20, 2, 301, 0);
  mesh.enqueue_unhurried(21, 3, 100, 1);  // Would fit, but does not overtake.
  CHECK(mesh.said() == "1>worker/1");
  mesh.ready(30, kWorker2, kMed, 8, 1000);
  CHECK(mesh.said() == "2>worker/2");
  mesh.ended(40, 1);
  CHECK(mesh.said() == "3>worker/1");
}

TEST_CASE("a run that fills exactly the KV that is left is taken") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 8, 1000);
  mesh.enqueue_unhurried(0, 1, 500, 0);
  mesh.prefilled(10, 1, 500);
  mesh.enqueue_unhurried(20, 2, 300, 0);
  CHECK(mesh.said() == "1>worker/1 2>worker/1");
}

TEST_CASE("what no instance can make even as its next request is refused at once, with the time it needs") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 100);
  REQUIRE(std::holds_alternative<CannotBeOnTime>(mesh.last_letter().message));
  CHECK(mesh.last_letter().to == ActorName("queue/med"));
  CHECK(std::get<CannotBeOnTime>(mesh.last_letter().message).earliest_in == Millis(101));
  CHECK(mesh.core().waiting() == 0);
  mesh.enqueue(0, 2, 100, 101);
  CHECK(mesh.said() == "1>late 2>worker/1");
}

TEST_CASE("what the plan leaves out waits until its latest start, and is refused then") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(0, 2, 100, 250);
  mesh.enqueue(0, 3, 120, 250);  // Of the two, only one can follow in time: the shorter.
  CHECK(mesh.said() == "1>worker/1");
  mesh.pass(81);
  CHECK(mesh.said() == "2>worker/1 3>late");
}

TEST_CASE("what the plan left out is served when time is won, since it was not refused before it had to be") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(0, 2, 100, 250);
  mesh.enqueue(0, 3, 120, 250);
  mesh.tell(20, RunEnded{RequestId{1}, 1, kWorker1, kMed, FinishReason::cancelled, Tokens(0)});
  CHECK(mesh.said() == "1>worker/1 2>worker/1");
  mesh.pass(101);
  CHECK(mesh.said() == "3>worker/1");
}

TEST_CASE("without an instance requests wait; those with a deadline are refused when it has passed") {
  Mesh mesh;
  mesh.enqueue(0, 1, 100, 300);
  mesh.enqueue_unhurried(0, 2, 100, 0);
  mesh.pass(300);
  CHECK(mesh.said() == "");
  mesh.pass(302);
  CHECK(mesh.said() == "1>late");
  mesh.ready(5000, kWorker1, kMed);
  CHECK(mesh.said() == "2>worker/1");
}

TEST_CASE("requests with a deadline go before those without, which go by rank") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue_unhurried(0, 1, 100, 0);
  mesh.enqueue_unhurried(1, 2, 100, 9);
  mesh.enqueue_unhurried(2, 3, 100, 5);
  mesh.enqueue(3, 4, 100, 5000);
  mesh.work(400);
  CHECK(mesh.said() == "1>worker/1 4>worker/1 3>worker/1 2>worker/1");
}

TEST_CASE("requests without a deadline get their floor share of a worker that deadlines fill") {
  SchedulerOptions generous = options();
  generous.floor_share = 0.28;
  Mesh mesh(generous);
  mesh.ready(0, kWorker1, kMed, 100);
  for (std::uint64_t i = 0; i < 9; ++i) mesh.enqueue(0, 10 + i, 100, 100'000);
  for (std::uint64_t i = 0; i < 3; ++i) mesh.enqueue_unhurried(1, 1 + i, 100, i);
  mesh.work(3000);
  // Each 100 ms with a deadline owe 0.28 / 0.72 * 100 = 39 ms to the others, whose prefills take 100 ms: due
  // after three (117, leaving 17), three more (133, leaving 33) and two more (111). The first of all went out
  // before any of the others waited.
  CHECK(mesh.said() ==
        "10>worker/1 11>worker/1 12>worker/1 13>worker/1 1>worker/1 14>worker/1 15>worker/1 16>worker/1 "
        "2>worker/1 17>worker/1 18>worker/1 3>worker/1");
}

TEST_CASE("between models, the one whose requests without a deadline were served least goes first") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.ready(0, kWorker1, kLaw);
  mesh.enqueue_unhurried(0, 1, 100, 0, kMed);
  mesh.enqueue_unhurried(0, 2, 100, 1, kMed);
  mesh.enqueue_unhurried(0, 3, 100, 2, kMed);
  mesh.enqueue_unhurried(0, 4, 100, 7, kLaw);
  mesh.enqueue_unhurried(0, 5, 100, 8, kLaw);
  mesh.work(1000);
  // The second model comes level with the first, which has been served 100 ms, and then they alternate.
  CHECK(mesh.said() == "1>worker/1 2>worker/1 4>worker/1 3>worker/1 5>worker/1");
}

TEST_CASE("a withdrawn request is not dispatched") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(0, 2, 100, 1000);
  mesh.tell(10, Withdrawn{RequestId{2}, kMed});
  mesh.pass(200);
  CHECK(mesh.said() == "1>worker/1");
  CHECK(mesh.core().waiting() == 0);
}

TEST_CASE("a dispatch that crosses a withdrawal gives seat and time back") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 1);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(0, 2, 100, 1000);
  CHECK(mesh.said() == "1>worker/1");
  mesh.tell(2, Withdrawn{RequestId{1}, kMed});
  CHECK(mesh.said() == "2>worker/1");
  CHECK(mesh.epdt(kWorker1, 2) == at(102) + Micros(1));
}

TEST_CASE("a newer attempt replaces an older one and an older one is ignored") {
  Mesh mesh;
  mesh.tell(0, hurried(1, 2, 100, 1000));
  mesh.tell(1, hurried(1, 3, 100, 1000));
  mesh.tell(2, hurried(1, 2, 100, 1000));
  CHECK(mesh.core().waiting() == 1);
  mesh.ready(3, kWorker1, kMed);
  CHECK(std::get<Dispatch>(mesh.last_letter().message).attempt == 3);
  CHECK(mesh.said() == "1>worker/1");
  mesh.ended(4, 1, kWorker1, 2);  // Late news of the older attempt.
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 1);
}

TEST_CASE("a request that its queue sends again after a lost dispatch is dispatched again, a running one not") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 1000);
  mesh.enqueue(50, 1, 100, 950);
  CHECK(mesh.said() == "1>worker/1 1>worker/1");
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 1);
  mesh.prefilled(150, 1, 100);
  mesh.enqueue(160, 1, 100, 840);
  CHECK(mesh.said() == "");
}

TEST_CASE("a refused request may come back as best effort under the same attempt") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 50);
  mesh.enqueue_unhurried(1, 1, 100, 0);
  CHECK(mesh.said() == "1>late 1>worker/1");
}

TEST_CASE("the loss of a worker frees its runs and leaves the waiting to the others") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 100, 10'000);
  mesh.enqueue(0, 2, 100, 10'000);
  CHECK(mesh.said() == "1>worker/1");
  mesh.tell(10, ActorLost{kWorker1, Incarnation{1}, "killed"});
  mesh.tell(20, hurried(1, 2, 100, 10'000));
  mesh.pass(30);
  CHECK(mesh.said() == "");
  mesh.ready(40, kWorker2, kMed);
  mesh.pass(300);
  CHECK(mesh.said() == "2>worker/2 1>worker/2");
}

TEST_CASE("a worker that returns under a new incarnation has no runs, and news of the old one are ignored") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 1);
  mesh.enqueue(0, 1, 100, 10'000);
  mesh.enqueue(0, 2, 100, 10'000);
  CHECK(mesh.said() == "1>worker/1");
  InstanceReady again{kWorker1, kMed, Incarnation{2}, 1, Tokens(1000), 1000.0, ""};
  mesh.tell(10, again);
  CHECK(mesh.said() == "2>worker/1");
  mesh.tell(11, InstanceGone{kWorker1, kMed, Incarnation{1}, "unloaded"});
  CHECK(mesh.core().fleet().workers().contains(kWorker1));
  again.incarnation = Incarnation{1};
  mesh.tell(12, again);
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 1);
}

TEST_CASE("an instance that is announced again keeps its runs and what it has learned") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 100);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    const auto ms = std::int64_t(i) * 100;
    mesh.enqueue(ms, i, 100, 1000);
    mesh.tell(ms + 50, PrefillFinished{RequestId{i}, 1, kWorker1, kMed, Micros(0), Millis(50), Tokens(100)});
  }
  mesh.said();
  mesh.ready(6000, kWorker1, kMed, 100);
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 50);
  mesh.ended(6001, 1);
  mesh.enqueue(6002, 99, 100, 1000);
  CHECK(std::get<Dispatch>(mesh.last_letter().message).estimated < Micros(60'000));
}

TEST_CASE("a worker that no longer holds a model gets no more of its requests, and its runs end in peace") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.ready(0, kWorker1, kLaw);
  mesh.enqueue(0, 1, 100, 10'000);
  mesh.tell(10, InstanceGone{kWorker1, kMed, Incarnation{1}, "unloaded"});
  mesh.enqueue(20, 2, 100, 10'000, kMed);
  mesh.enqueue(20, 3, 100, 10'000, kLaw);
  mesh.pass(200);
  CHECK(mesh.said() == "1>worker/1 3>worker/1");
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 2);
  mesh.ended(300, 1);
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 1);
}

TEST_CASE("the lifecycle hears once that a model is wanted, each second that it still is, and when it is no longer") {
  using Words = std::vector<std::string>;
  Mesh mesh;
  mesh.enqueue(0, 1, 100, 10'000);
  CHECK(mesh.wants() == Words{"med:1"});
  CHECK(mesh.wants_again() == at(1'000));
  mesh.enqueue(10, 2, 100, 10'000);
  CHECK(mesh.wants().empty());
  mesh.repeat_wants(1'000);
  CHECK(mesh.wants() == Words{"med:2"});
  CHECK(mesh.wants_again() == at(2'000));
  mesh.ready(1'500, kWorker1, kMed);
  CHECK(mesh.wants() == Words{"med:0"});
  mesh.pass(1'900);  // Both are dispatched.
  mesh.repeat_wants(2'000);
  CHECK(mesh.wants().empty());
  CHECK(mesh.wants_again() == Instant::max());
  mesh.tell(2'100, ActorLost{kWorker1, Incarnation{1}, "killed"});
  CHECK(mesh.wants().empty());  // Nothing waits.
  mesh.enqueue(2'200, 3, 100, 10'000);
  CHECK(mesh.wants() == Words{"med:1"});
  mesh.tell(2'300, Withdrawn{RequestId{3}, kMed});
  CHECK(mesh.wants() == Words{"med:0"});
}

TEST_CASE("the loss of a queue forgets what waits in it and what it may not have passed on") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, 10, 10'000);
  mesh.prefilled(10, 1, 10);
  mesh.enqueue(20, 2, 100, 10'000);
  mesh.enqueue(20, 3, 100, 10'000);
  CHECK(mesh.said() == "1>worker/1 2>worker/1");
  mesh.tell(30, ActorLost{ActorName("queue/med"), Incarnation{1}, "killed"});
  CHECK(mesh.core().waiting() == 0);
  CHECK(mesh.core().fleet().workers().at(kWorker1).running == 1);  // Request 1 runs, as its prefill has shown.
  CHECK(mesh.epdt(kWorker1, 30) == at(30));
}

TEST_CASE("a burst on idle workers is spread over all of them") {
  Mesh mesh;
  mesh.enqueue(0, 1, 50, 10'000);
  mesh.enqueue(0, 2, 50, 10'001);
  mesh.ready(1, kWorker1, kMed);
  mesh.ready(1, kWorker2, kMed);
  CHECK(mesh.said() == "1>worker/1 2>worker/2");
}

TEST_CASE("a long backlog is planned at most once in two milliseconds, and no arrival is overlooked") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed, 1000);
  for (std::uint64_t i = 1; i <= 40; ++i) mesh.enqueue(0, i, 100, 100'000);
  CHECK(mesh.said() == "1>worker/1");
  mesh.tell(at(50), PrefillFinished{RequestId{1}, 1, kWorker1, kMed, Micros(0), Millis(100), Tokens(100)});
  CHECK(mesh.said() == "2>worker/1");  // The last plan is older than that.
  mesh.tell(at(51), PrefillFinished{RequestId{2}, 1, kWorker1, kMed, Micros(0), Millis(100), Tokens(100)});
  CHECK(mesh.said() == "");
  CHECK(mesh.alarm() == at(52));
  mesh.pass(52);
  CHECK(mesh.said() == "3>worker/1");
}

TEST_CASE("a crowd of one model does not hide another model's requests from the plan") {
  SchedulerOptions narrow = options();
  narrow.plan_jobs_max = 10;
  Mesh mesh(narrow);
  for (std::uint64_t i = 1; i <= 50; ++i) mesh.enqueue(0, i, 100, 10'000, kMed);
  mesh.enqueue(0, 99, 100, 100'000, kLaw);
  mesh.ready(100, kWorker1, kLaw);
  mesh.ready(100, kWorker1, kMed);
  mesh.ready(100, kWorker2, kLaw);
  mesh.pass(100);
  CHECK(mesh.said().find("99>") != std::string::npos);
}

TEST_CASE("numbers at the edge of their types are taken for what they are") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.enqueue(0, 1, std::int64_t(1) << 62, std::int64_t(1) << 62);
  mesh.enqueue(0, 2, -5, 1000);
  mesh.enqueue(0, 3, 10, -1000);
  CHECK(mesh.said() == "1>late 2>worker/1 3>late");
}

namespace {

const ActorName kWorker3("worker/3");

InstanceReady ready_as(WorkerRole role, const ActorName& worker, std::int64_t kv_capacity = 100'000) {
  InstanceReady ready{worker, kMed, Incarnation{1}, 8, Tokens(kv_capacity), 1000.0, ""};
  ready.role = role;
  return ready;
}

Dispatch last_dispatch(const Mesh& mesh) {
  return std::get<Dispatch>(mesh.last_letter().message);
}

RunMoved moved(std::uint64_t id, const ActorName& from, const ActorName& to) {
  return {RequestId{id}, 1, kMed, from, to};
}

std::int64_t running(const Mesh& mesh, const ActorName& worker) {
  return mesh.core().fleet().workers().at(worker).running;
}

}  // namespace

TEST_CASE("prompts go to workers that prefill, with those that decode named by fewest runs, then by KV left") {
  Mesh mesh;
  mesh.tell(0, ready_as(WorkerRole::decode, kWorker1, 1'000));
  mesh.tell(0, ready_as(WorkerRole::prefill, kWorker2));
  mesh.tell(0, ready_as(WorkerRole::decode, kWorker3, 2'000));
  mesh.enqueue(0, 1, 10, 1000);
  CHECK(last_dispatch(mesh).worker == kWorker2);
  CHECK(last_dispatch(mesh).decode_on == std::vector{kWorker3, kWorker1});
  mesh.prefilled(11, 1, 10, kWorker2);
  mesh.enqueue(11, 2, 10, 1000);
  CHECK(last_dispatch(mesh).decode_on == std::vector{kWorker1, kWorker3});  // the first is expected at worker/3
  mesh.tell(12, moved(1, kWorker2, kWorker3));
  CHECK(running(mesh, kWorker2) == 1);
  CHECK(running(mesh, kWorker3) == 1);
  mesh.ended(13, 1, kWorker3);
  CHECK(running(mesh, kWorker3) == 0);
}

TEST_CASE("a mixed worker keeps its runs") {
  Mesh mesh;
  mesh.ready(0, kWorker1, kMed);
  mesh.tell(0, ready_as(WorkerRole::decode, kWorker2));
  mesh.enqueue(0, 1, 10, 1000);
  CHECK(last_dispatch(mesh).worker == kWorker1);
  CHECK(last_dispatch(mesh).decode_on.empty());
}

TEST_CASE("a worker that decodes gets prompts while nobody else holds the model, and no longer") {
  Mesh mesh;
  mesh.tell(0, ready_as(WorkerRole::decode, kWorker1));
  mesh.enqueue(0, 1, 10, 1000);
  CHECK(mesh.said() == "1>worker/1");
  mesh.tell(1, ready_as(WorkerRole::prefill, kWorker2));
  mesh.prefilled(11, 1, 10);  // its cost model has learned, and still it takes none
  mesh.enqueue(11, 2, 10, 1000);
  CHECK(mesh.said() == "2>worker/2");
  mesh.tell(12, ActorLost{kWorker2, Incarnation{1}, "killed"});
  mesh.enqueue(12, 3, 10, 1000);
  CHECK(mesh.said() == "3>worker/1");
}

TEST_CASE("a run that has moved before its prefill was told of has ended it, and dies with its taker") {
  Mesh mesh;
  mesh.tell(0, ready_as(WorkerRole::prefill, kWorker1));
  mesh.tell(0, ready_as(WorkerRole::decode, kWorker2));
  mesh.enqueue(0, 1, 100, 1000);
  mesh.tell(50, moved(1, kWorker1, kWorker2));
  CHECK(mesh.epdt(kWorker1, 50) == at(50));
  mesh.prefilled(51, 1, 100);
  CHECK(running(mesh, kWorker1) == 0);
  CHECK(running(mesh, kWorker2) == 1);
  mesh.tell(52, moved(1, kWorker1, kWorker2));  // of a run that is not there
  CHECK(running(mesh, kWorker2) == 1);
  mesh.tell(60, ActorLost{kWorker2, Incarnation{1}, "killed"});
  CHECK_FALSE(mesh.core().fleet().run_of(RequestId{1}).has_value());
}
