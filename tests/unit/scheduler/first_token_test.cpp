// Predictions in worlds that are small enough to be done by hand. Every instance prefills one token in a millisecond.
#include "actors/scheduler/first_token.hpp"

#include <doctest/doctest.h>

using namespace sangam;

namespace {

constexpr ModelIndex kMed = 0, kLaw = 1;
const ActorName kWorker1("worker/1"), kWorker2("worker/2");

Instant at(std::int64_t ms) { return Instant(Millis(ms)); }

/// Costs have an overhead of a microsecond each, which these tests round off.
struct World {
  World() { backlog.resize(2); }

  void hold(const ActorName& worker, ModelIndex model) {
    InstanceReady ready;
    ready.worker = worker;
    ready.model = ModelId(model == kMed ? "med" : "law");
    ready.running_max = 8;
    ready.kv_capacity = Tokens(1'000'000);
    ready.prefill_tokens_per_second = 1000.0;
    fleet.add(ready, model);
  }
  /// Lets the worker prefill so many tokens from time 0.
  void busy(const ActorName& name, ModelIndex model, std::int64_t tokens) {
    const std::array models{model};
    for (Worker* worker : fleet.holders_of(models)) {
      if (worker->name == name) fleet.start(*worker, job(model, tokens, Instant::max(), 0), at(0));
    }
  }
  WaitingJob job(ModelIndex model, std::int64_t tokens, Instant deadline, std::uint64_t rank) {
    WaitingJob job;
    job.request = RequestId{next++};
    job.rank = rank;
    job.prefill.model = model;
    job.prefill.tokens = Tokens(tokens);
    job.prefill.deadline = deadline;
    return job;
  }
  void hurried(ModelIndex model, std::int64_t tokens, std::int64_t deadline) {
    backlog.add(job(model, tokens, at(deadline), 0));
  }
  void unhurried(ModelIndex model, std::int64_t tokens, std::uint64_t rank) {
    backlog.add(job(model, tokens, Instant::max(), rank));
  }
  /// In milliseconds from time 0; -1 for nothing.
  std::int64_t first_token(ModelIndex model, std::int64_t tokens, Instant deadline, std::uint64_t rank = 0) {
    const auto end = first_token_in({job(model, tokens, deadline, rank).prefill, rank}, fleet, backlog, at(0));
    return end ? std::chrono::round<Millis>(*end).count() : -1;
  }

  FleetOptions options{.step_overhead = Micros(1)};
  Fleet fleet{options};
  Backlog backlog;
  std::uint64_t next = 1;
};

}  // namespace

TEST_CASE("nothing is predicted for a model that nobody holds") {
  World world;
  CHECK(world.first_token(kMed, 10, at(100)) == -1);
  world.hold(kWorker1, kLaw);
  CHECK(world.first_token(kMed, 10, at(100)) == -1);
}

TEST_CASE("an idle worker takes as long as the prompt, a busy one ends first what it has") {
  World world;
  world.hold(kWorker1, kMed);
  CHECK(world.first_token(kMed, 40, at(1000)) == 40);
  world.busy(kWorker1, kMed, 300);
  CHECK(world.first_token(kMed, 40, at(1000)) == 340);
}

TEST_CASE("what is due earlier is ahead; what is due later or has no deadline is not") {
  World world;
  world.hold(kWorker1, kMed);
  world.hurried(kMed, 100, 500);
  world.hurried(kMed, 20, 700);
  world.unhurried(kMed, 900, 1);
  CHECK(world.first_token(kMed, 10, at(400)) == 10);
  CHECK(world.first_token(kMed, 10, at(500)) == 110);
  CHECK(world.first_token(kMed, 10, at(900)) == 130);
}

TEST_CASE("without a deadline, all deadlines and lower ranks are ahead") {
  World world;
  world.hold(kWorker1, kMed);
  world.hurried(kMed, 100, 500);
  world.unhurried(kMed, 30, 5);
  world.unhurried(kMed, 7, 9);
  CHECK(world.first_token(kMed, 1, Instant::max(), 4) == 101);
  CHECK(world.first_token(kMed, 1, Instant::max(), 5) == 131);
  CHECK(world.first_token(kMed, 1, Instant::max(), 10) == 138);
}

TEST_CASE("work ahead flows to the workers that are free first") {
  World world;
  world.hold(kWorker1, kMed);
  world.hold(kWorker2, kMed);
  world.busy(kWorker1, kMed, 100);
  // 60 ms fit on the second worker before the first is free.
  world.hurried(kMed, 60, 500);
  CHECK(world.first_token(kMed, 10, at(900)) == 70);
  // 160 ms: 130 on the second, 30 on the first, both at work until 130.
  world.hurried(kMed, 100, 500);
  CHECK(world.first_token(kMed, 10, at(900)) == 140);
}

TEST_CASE("what a neighbour has ahead falls on the workers that hold it") {
  World world;
  world.hold(kWorker1, kMed);
  world.hold(kWorker1, kLaw);
  world.hold(kWorker2, kLaw);
  world.hurried(kLaw, 80, 300);
  // Half of it on each of the two that hold it.
  CHECK(world.first_token(kMed, 10, at(900)) == 50);
  CHECK(world.first_token(kMed, 10, at(200)) == 10);
  // The neighbour's own next request: both workers share the 80 ms.
  CHECK(world.first_token(kLaw, 10, at(900)) == 50);
}

TEST_CASE("without deadlines, a neighbour's crowd takes only its turns") {
  World world;
  world.hold(kWorker1, kMed);
  world.hold(kWorker1, kLaw);
  world.unhurried(kLaw, 5000, 0);
  world.unhurried(kMed, 20, 0);
  // 20 ahead in the own model and 10 of its own; the neighbour gets as much in between.
  CHECK(world.first_token(kMed, 10, Instant::max(), 1) == 60);
  // With less waiting than its turns it takes only that.
  CHECK(world.first_token(kLaw, 100, Instant::max(), 1) == 5120);
}
