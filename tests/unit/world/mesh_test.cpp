// Small meshes in virtual time, against hand calculation; and that a world is the same each time.
#include <doctest/doctest.h>

#include <memory>

#include "actors/lifecycle/lifecycle_core.hpp"
#include "actors/queue/queue_core.hpp"
#include "actors/scheduler/scheduler_core.hpp"
#include "sim/world/clients.hpp"
#include "sim/world/scenario.hpp"
#include "sim/world/sim_worker.hpp"
#include "sim/world/world.hpp"

namespace sangam::sim {
namespace {

const ModelId kModel{"m"};

/// 10 ms and 0.1 ms a token to prefill, 20 ms a step; 1 GB of weights, 1 MB of KV a token.
ModelSpec round_model() {
  ModelSpec model;
  model.id = kModel;
  model.weights = Bytes(1'000'000'000);
  model.kv_per_token = Bytes(1'000'000);
  model.prefill_fixed = 10'000.0;
  model.prefill_per_token = 100.0;
  model.decode_fixed = 20'000.0;
  return model;
}

TraceRequest request(std::int64_t arrival_ms, std::int64_t input, std::int64_t output) {
  return {Millis(arrival_ms), 0, Tokens(input), Tokens(output)};
}

/// One model that is active on each of the workers from the start, and no control loop.
class SmallMesh {
 public:
  SmallMesh(std::size_t workers, std::vector<TraceRequest> requests, ServiceClass service_class)
      : trace_{{"app"}, std::move(requests)}, journal_(trace_.requests.size()) {
    for (std::size_t i = 1; i <= workers; ++i) settle_worker(i, Incarnation{1});
    settle<SchedulerCore>(ActorName("scheduler"), SchedulerOptions{});
    settle<LifecycleCore>(ActorName("lifecycle"), LifecycleOptions{});
    QueueOptions queue;
    queue.model = kModel;
    settle<QueueCore>(queue_of(kModel), queue);
    ClientOptions options;
    options.models = {kModel};
    options.service_class = service_class;
    auto clients = std::make_unique<Clients>(options, trace_, journal_);
    Clients& people = *clients;
    world_.settle(options.name, std::move(clients));
    world_.act(options.name, [&](Instant now, Outbox& out) { people.start(now, out); });
  }

  void settle_worker(std::size_t i, Incarnation incarnation) {
    SimWorkerOptions options;
    options.name = name_of(i);
    options.incarnation = incarnation;
    options.models = {&model_};
    options.active = {kModel};
    world_.settle(options.name, std::make_unique<SimWorker>(options, journal_), incarnation);
  }
  void kill_worker(std::size_t i) { world_.kill(name_of(i), "test"); }
  void run_until(std::int64_t millis) { world_.run_until(Instant(Millis(millis))); }
  const JournalEntry& entry(std::uint64_t request) { return journal_.of(RequestId(request)); }
  const World& world() const { return world_; }

 private:
  static ActorName name_of(std::size_t i) { return ActorName("worker/" + std::to_string(i)); }

  template <class Core, class Options>
  void settle(const ActorName& name, Options options) {
    auto resident = std::make_unique<Resident<Core>>(options);
    Core& core = resident->core();
    world_.settle(name, std::move(resident));
    if constexpr (requires(Outbox out) { core.start(Instant{}, out); }) {
      world_.act(name, [&](Instant now, Outbox& out) { core.start(now, out); });
    }
  }

  ModelSpec model_ = round_model();
  Trace trace_;
  Journal journal_;
  World world_{Micros(200)};
};

TEST_CASE("one request: four letters, its prefill, a step for each later token") {
  SmallMesh mesh(1, {request(1'000, 100, 3)}, ServiceClass::deadline);
  mesh.run_until(5'000);
  const JournalEntry& entry = mesh.entry(1);
  CHECK(entry.ended);
  CHECK(entry.code == ErrorCode::none);
  CHECK(entry.produced == 3);
  // Client to queue to scheduler to queue to worker: 0.8 ms; 10 + 100 x 0.1 ms of prefill; then two steps.
  CHECK(entry.first == doctest::Approx(1'000'000.0 + 800.0 + 20'000.0).epsilon(1e-9));
  CHECK(entry.last == doctest::Approx(entry.first + 2 * 20'000.0).epsilon(1e-9));
  CHECK(entry.late == 0);
}

TEST_CASE("a prefill and a decode share the worker: a chunk, a step, a chunk, a step") {
  // The second prompt is two chunks of 56.2 ms; meanwhile the first request decodes, 20 ms a step of which only the
  // rows' part (nothing here) is added, since chunk and rows read the weights together.
  SmallMesh mesh(1, {request(1'000, 100, 6), request(1'041, 1'024, 1)}, ServiceClass::normal);
  mesh.run_until(5'000);
  const JournalEntry& first = mesh.entry(1);
  const JournalEntry& second = mesh.entry(2);
  const double second_begins = 1'041'800.0;
  CHECK(second.first == doctest::Approx(second_begins + 112'400.0).epsilon(1e-6));
  // From its first token at 1,020.8 ms on: 1.05 steps of 20 ms, two of 56.2 ms, the rest of 20 ms.
  const double tokens_before = (second_begins - first.first) / 20'000.0;
  const double left = 5.0 - tokens_before - 2.0;
  CHECK(first.last == doctest::Approx(second.first + left * 20'000.0).epsilon(1e-6));
}

TEST_CASE("what cannot be on time is refused and counts all its tokens late") {
  // Ten at once, each 20 ms of prefill, due 120 ms after arrival: five or six can be.
  SmallMesh mesh(1, std::vector<TraceRequest>(10, request(1'000, 100, 2)), ServiceClass::deadline);
  mesh.run_until(5'000);
  int refused = 0;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    CHECK(mesh.entry(i).ended);
    if (mesh.entry(i).code != ErrorCode::cannot_be_on_time) continue;
    ++refused;
    CHECK(mesh.entry(i).late == 2);
  }
  CHECK(refused >= 4);
  CHECK(refused <= 5);
}

TEST_CASE("a killed worker's requests go on elsewhere, with the tokens so far") {
  SmallMesh mesh(2, std::vector<TraceRequest>(8, request(1'000, 100, 50)), ServiceClass::normal);
  mesh.run_until(1'400);
  mesh.kill_worker(1);
  mesh.run_until(1'500);
  mesh.settle_worker(1, Incarnation{2});
  mesh.run_until(20'000);
  for (std::uint64_t i = 1; i <= 8; ++i) {
    CHECK(mesh.entry(i).ended);
    CHECK(mesh.entry(i).code == ErrorCode::none);
    CHECK(mesh.entry(i).produced == 50);
  }
}

TEST_CASE("the same scenario gives the same run, request by request") {
  Scenario scenario = w0_scenario();
  scenario.after = Micros(5'000'000);
  Trace trace;
  for (std::uint32_t app = 0; app < scenario.models.size(); ++app) trace.apps.push_back(scenario.models[app].id.text());
  for (std::int64_t i = 0; i < 400; ++i) {
    trace.requests.push_back({Millis(25 * i), std::uint32_t(i * i % 62), Tokens(50 + i % 900), Tokens(1 + i % 40)});
  }
  const SimulatedRun one = simulate(scenario, trace);
  const SimulatedRun two = simulate(scenario, trace);
  REQUIRE(one.measured.records.size() == 400);
  CHECK(one.letters == two.letters);
  std::size_t served = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    CHECK(one.measured.records[i].ttft == two.measured.records[i].ttft);
    CHECK(one.measured.records[i].end == two.measured.records[i].end);
    served += one.measured.records[i].code == ErrorCode::none;
  }
  CHECK(served > 0);
}

}  // namespace
}  // namespace sangam::sim
