// What planners hear of a worker: its counts, what its models are made of, and the role that it has been given.
#include <doctest/doctest.h>

#include "tests/unit/worker/worker_kit.hpp"

using namespace sangam;
using namespace sangam::worker_kit;

namespace {

const ActorName kOracle("oracle");
const ActorName kPlacement("placement");
const ActorName kAutoscaler("autoscaler");
constexpr Timer kStatus{1};

StepOutcome step_of(std::vector<PrefillRows> prefills, std::vector<TokensProduced> produced, std::int64_t micros) {
  StepOutcome outcome;
  outcome.prefills = std::move(prefills);
  outcome.produced = std::move(produced);
  outcome.elapsed = Micros(micros);
  return outcome;
}

/// Wakes the worker as each half second does, and returns what it tells the oracle.
Telemetry told(Desk& desk, Instant now) {
  desk.out.clear();
  desk.worker.wake(kStatus, now, desk.out);
  const auto letters = desk.said<Telemetry>(kOracle);
  REQUIRE(letters.size() == 1);
  return letters.front();
}

const ModelLoad& load(const Telemetry& letter, const ModelId& model) {
  const auto found = std::find_if(letter.models.begin(), letter.models.end(),
                                  [&](const ModelLoad& each) { return each.model == model; });
  REQUIRE(found != letter.models.end());
  return *found;
}

}  // namespace

TEST_CASE("a step's time is divided among prompts and decodes by their rows") {
  Desk desk;
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  desk.hear(run_of(1));
  desk.step(step_of({{RequestId{1}, Tokens(3), true}}, {tokens(1, 0)}, 600), at(1000));
  desk.hear(run_of(2));
  // Three rows of a prompt beside one decode, which reads the prompt of 3 and its first token.
  desk.step(step_of({{RequestId{2}, Tokens(3), true}}, {tokens(1, 1), tokens(2, 0)}, 800), at(2000));
  desk.step(step_of({}, {tokens(1, 2), tokens(2, 1)}, 500), at(3000));
  const Telemetry letter = told(desk, at(10'000));
  CHECK(letter.worker == ActorName("worker/1"));
  CHECK(letter.incarnation == Incarnation{7});
  CHECK(letter.sequence == 1);
  CHECK(letter.up == Micros(10'000));
  CHECK(letter.busy == Micros(1900));
  CHECK(letter.steps == 3);
  CHECK(letter.longest_step == Micros(800));
  CHECK(letter.compute == doctest::Approx(1200.0 / 10'000));
  CHECK(letter.bandwidth == doctest::Approx(700.0 / 10'000));
  const ModelLoad& model = load(letter, kModel);
  CHECK(model.prefill_tokens == 6);
  CHECK(model.output_tokens == 5);
  CHECK(model.decode_steps == 2);
  CHECK(model.context_tokens == 4 + 5 + 4);
  CHECK(model.prefill_time == Micros(600 + 600));
  CHECK(model.decode_time == Micros(200 + 500));
  CHECK(load(letter, kOther).output_tokens == 0);
}

TEST_CASE("counts run on, and what is told since the letter before begins anew") {
  Desk desk;
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  desk.hear(run_of(1));
  desk.step(step_of({{RequestId{1}, Tokens(3), true}}, {tokens(1, 0)}, 600), at(1000));
  (void)told(desk, at(10'000));
  const Telemetry letter = told(desk, at(20'000));
  CHECK(letter.sequence == 2);
  CHECK(letter.busy == Micros(600));
  CHECK(letter.longest_step == Micros(0));
  CHECK(letter.compute == 0.0);
  CHECK(load(letter, kModel).prefill_tokens == 3);
}

TEST_CASE("prefill ahead is what the runs that have no first token yet were estimated to take, less what they took") {
  Desk desk;
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  desk.hear(run_of(1));
  desk.hear(run_of(2));
  CHECK(told(desk, at(100)).prefill_ahead == Micros(1000));
  desk.step(step_of({{RequestId{1}, Tokens(2), false}}, {}, 200), at(1000));
  CHECK(told(desk, at(2000)).prefill_ahead == Micros(300 + 500));
  desk.step(step_of({{RequestId{1}, Tokens(1), true}}, {tokens(1, 0)}, 900), at(3000));
  CHECK(told(desk, at(4000)).prefill_ahead == Micros(500));
}

TEST_CASE("pages, and what runs and waits now, are the runner's") {
  Desk desk;
  const Bytes page = options().page_bytes;
  desk.runner.memory.pool = page * 10;
  desk.runner.memory.weights = page * 3;
  desk.runner.memory.kv = page * 2;
  desk.runner.statuses[kModel] = {.worker = {}, .model = kModel, .running = 2, .waiting = 1, .kv_used = Pages(2)};
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  const Telemetry letter = told(desk, at(100));
  CHECK(letter.pages == Pages(10));
  CHECK(letter.pages_used == Pages(5));
  CHECK(load(letter, kModel).running == 2);
  CHECK(load(letter, kModel).waiting == 1);
  CHECK(load(letter, kModel).kv_used == Pages(2));
  CHECK(letter.moved == Bytes(20));  // Two loads of 10 bytes.
  CHECK(letter.transfers == 0);
}

TEST_CASE("a change that is under way is a transfer, and a model that is not on the device is not told") {
  Desk desk;
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  Order order;
  order.epoch = 1;
  order.operation = 1;
  order.incarnation = Incarnation{7};
  order.model = kOther;
  order.target = Residency::warm;
  desk.hear(order);
  CHECK(told(desk, at(100)).transfers == 1);
  desk.finish_moves();
  const Telemetry letter = told(desk, at(200));
  CHECK(letter.transfers == 0);
  REQUIRE(letter.models.size() == 1);
  CHECK(letter.models.front().model == kModel);
}

TEST_CASE("pages that are set aside for a run that is on its way are told until it has come or will not come") {
  Desk desk;
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  ReserveKv wish;
  wish.request = RequestId{5};
  wish.model = kModel;
  wish.tokens = Tokens(20);
  wish.from = ActorName("worker/2");
  wish.kv.pages = {4, 5, 6};
  desk.hear(wish);
  CHECK(load(told(desk, at(100)), kModel).kv_reserved == Pages(3));
  desk.hear(Cancel{RequestId{5}});
  CHECK(load(told(desk, at(200)), kModel).kv_reserved == Pages(0));
}

TEST_CASE("who plans hears of what is there: each what it plans with, and nothing after its loss") {
  Desk desk;
  desk.hear(ActorFound{kPlacement, Incarnation{1}});
  CHECK(desk.said<ModelTable>(kPlacement).size() == 2);
  CHECK(desk.said<ModelTable>(kPlacement).front().segments.front().bytes == Bytes(10));
  CHECK(desk.said<InstanceState>(kPlacement).size() == 2);
  CHECK(desk.said<WorkerMemory>(kPlacement).size() == 1);
  desk.hear(ActorFound{kAutoscaler, Incarnation{1}});
  CHECK(desk.said<ModelTable>(kAutoscaler).empty());
  CHECK(desk.said<InstanceState>(kAutoscaler).size() == 2);
  CHECK(desk.said<WorkerMemory>(kAutoscaler).empty());
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  CHECK(desk.said<ModelTable>(kOracle).size() == 2);
  CHECK(desk.said<InstanceState>(kOracle).empty());
  (void)told(desk, at(100));
  CHECK(desk.said<Telemetry>(kPlacement).size() == 1);
  CHECK(desk.said<Telemetry>(kAutoscaler).size() == 1);
  const ActorName gateway("gateway/1");
  desk.hear(ActorFound{gateway, Incarnation{1}});
  CHECK(desk.said<ModelTable>(gateway).size() == 2);
  (void)told(desk, at(150));
  CHECK(desk.said<Telemetry>(gateway).size() == 1);
  desk.hear(ActorLost{gateway, Incarnation{1}, "crashed"});
  desk.hear(ActorLost{kPlacement, Incarnation{1}, "crashed"});
  (void)told(desk, at(200));
  CHECK(desk.said<Telemetry>(kPlacement).empty());
  CHECK(desk.said<Telemetry>(gateway).empty());
  CHECK(desk.said<Telemetry>(kAutoscaler).size() == 1);
}

TEST_CASE("a model's table is told when it has been read, not when it wakes") {
  WorkerOptions cold = options();
  cold.preload = false;
  Desk desk(true, cold);
  desk.hear(ActorFound{kOracle, Incarnation{1}});
  CHECK(desk.said<ModelTable>(kOracle).empty());
  Order order;
  order.epoch = 1;
  order.incarnation = Incarnation{7};
  order.model = kModel;
  for (const auto& [target, tables] : std::vector<std::pair<Residency, std::size_t>>{
           {Residency::warm, 1}, {Residency::active, 0}, {Residency::warm, 0}, {Residency::cold, 0}, {Residency::active, 1}}) {
    ++order.operation;
    order.target = target;
    desk.hear(order);
    desk.finish_moves();
    CAPTURE(order.operation);
    CHECK(desk.said<ModelTable>(kOracle).size() == tables);
  }
}

TEST_CASE("a mixed worker that can hand runs over takes the role of the last order, for all its models") {
  WorkerOptions with_holder = options();
  with_holder.holder = "/run/holder.sock";
  Desk desk(true, with_holder);
  Order order;
  order.epoch = 1;
  order.operation = 1;
  order.incarnation = Incarnation{7};
  order.model = kModel;
  order.role = WorkerRole::decode;
  desk.hear(order);
  const auto ready = desk.said<InstanceReady>(kScheduler);
  REQUIRE(ready.size() == 2);
  CHECK(ready.front().role == WorkerRole::decode);
  CHECK(ready.back().role == WorkerRole::decode);
  order.operation = 2;
  desk.hear(order);
  CHECK(desk.said<InstanceReady>(kScheduler).empty());
}

TEST_CASE("a worker without a holder, or with a role of its own, keeps it") {
  WorkerOptions own = options();
  own.holder = "/run/holder.sock";
  own.role = WorkerRole::prefill;
  for (const WorkerOptions& as : {own, options()}) {
    Desk desk(true, as);
    Order order;
    order.epoch = 1;
    order.operation = 1;
    order.incarnation = Incarnation{7};
    order.model = kModel;
    order.role = WorkerRole::decode;
    desk.hear(order);
    CHECK(desk.said<InstanceReady>(kScheduler).empty());
    desk.hear(ActorFound{kScheduler, Incarnation{2}});
    REQUIRE(desk.said<InstanceReady>(kScheduler).size() == 2);
    CHECK(desk.said<InstanceReady>(kScheduler).front().role == as.role);
  }
}
