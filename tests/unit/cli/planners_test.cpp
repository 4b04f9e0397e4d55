// The planners as they are hosted: epochs over restarts, and the placement's plan in the store.
#include "cli/planners.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

using namespace sangam;

namespace {

namespace fs = std::filesystem;

const ModelId kModel("A-arith");
const ActorName kWorker("worker/1"), kLifecycle("lifecycle");

Instant at(std::int64_t millis) { return Instant(Millis(millis)); }

struct StoreFolder {
  fs::path path = fs::temp_directory_path() / ("sangam-plans-" + std::to_string(getpid()));
  StoreFolder() { fs::remove_all(path); }
  ~StoreFolder() { fs::remove_all(path); }
};

PlacementOptions placement(std::uint64_t epoch) {
  PlacementOptions options;
  options.tell = {kLifecycle};
  options.epoch = epoch;
  options.pools.enter_dwell = Millis(0);
  options.settle = Millis(100);
  return options;
}

/// A model that is on the worker, small, even and in use.
void tell_of_model(Hosted& hosted, Instant now, Outbox& out, double rate) {
  ModelTable table;
  table.model = kModel;
  table.kv_per_token = Bytes(1);
  table.segments = {{1, Bytes(100)}};
  InstanceState state;
  state.worker = kWorker;
  state.model = kModel;
  state.incarnation = Incarnation{1};
  WorkerMemory memory;
  memory.worker = kWorker;
  memory.pool = Bytes(10'000);
  Telemetry telemetry;
  telemetry.worker = kWorker;
  ModelForecast model;
  model.model = kModel;
  model.requests_per_second = rate;
  model.volatility = 1.0;
  model.compute = 0.01;
  model.mixed_attainment = {1.0};
  Forecast forecast;
  forecast.models = {model};
  for (const Message& message : std::vector<Message>{table, state, memory, telemetry, forecast})
    CHECK(hosted.on(message, now, out));
}

std::vector<Plan> plans(const Outbox& out) {
  std::vector<Plan> found;
  for (const Outbox::Letter& letter : out.letters) {
    const auto* plan = std::get_if<Plan>(&letter.message);
    if (plan != nullptr && letter.to == kLifecycle) found.push_back(*plan);
  }
  return found;
}

/// Lets it settle; its first plan.
Plan first_plan(Hosted& hosted, Instant now) {
  Outbox out;
  hosted.wake(Timer{1}, now, out);
  for (const LogLine& line : out.logs) CHECK_MESSAGE(line.level == LogLevel::info, line.event, " ", line.fields.back().second);
  REQUIRE_FALSE(plans(out).empty());
  return plans(out).back();
}

}  // namespace

TEST_CASE("epochs rise over restarts of an actor and of its process, with room for the plans between") {
  // The host counts restarts in the lower 16 bits of an actor's incarnation.
  const std::uint64_t first = first_epoch(Incarnation{1 << 16});
  const std::uint64_t restarted = first_epoch(Incarnation{(1 << 16) + 1});
  const std::uint64_t next_process = first_epoch(Incarnation{2 << 16});
  CHECK(restarted - first > 2ULL * 86'400 * 365);  // Two plans a second for a year.
  CHECK(next_process > restarted);
  CHECK(first_epoch(Incarnation{100'000ULL << 16}) > next_process);  // No overflow.
}

TEST_CASE("a placement that comes anew goes on from the last plan, with a higher epoch") {
  const StoreFolder folder;
  auto store = Store::open(folder.path);
  REQUIRE(store);
  Outbox out;
  auto former = keep_plans(placement(first_epoch(Incarnation{1})), *store);
  former->start(at(0), out);
  tell_of_model(*former, at(0), out, 1.0);
  const Plan said = first_plan(*former, at(100));
  REQUIRE(said.instances.size() == 1);
  CHECK(said.instances.front().model == kModel);
  CHECK(said.instances.front().worker == kWorker);
  former.reset();

  // Nobody asks for the model now, so that only a memory of it keeps it in the pool.
  auto next = keep_plans(placement(first_epoch(Incarnation{2})), *store);
  out.clear();
  next->start(at(0), out);
  CHECK(out.logs.empty());
  tell_of_model(*next, at(0), out, 0.0);
  const Plan again = first_plan(*next, at(100));
  REQUIRE(again.instances.size() == 1);
  CHECK(again.instances.front().worker == kWorker);
  CHECK(again.epoch > said.epoch);
}

TEST_CASE("a record that is damaged is named, and the placement begins anew") {
  const StoreFolder folder;
  auto store = Store::open(folder.path);
  REQUIRE(store);
  REQUIRE(store->put(Family::meta, "placement/plan", "not a plan"));
  auto hosted = keep_plans(placement(5), *store);
  Outbox out;
  hosted->start(at(0), out);
  REQUIRE(out.logs.size() == 1);
  CHECK(out.logs.front().event == "placement.plan_unreadable");
  tell_of_model(*hosted, at(0), out, 1.0);
  CHECK(first_plan(*hosted, at(100)).epoch == 6);
}
