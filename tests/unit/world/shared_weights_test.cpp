// What fine-tunes of one base have in common lies on a worker once: memory, copies and tables, by hand.
#include <doctest/doctest.h>

#include <memory>

#include "sim/world/sim_worker.hpp"
#include "sim/world/world.hpp"

namespace sangam::sim {
namespace {

const ActorName kWorker{"worker/1"};
const ActorName kLifecycle{"lifecycle"};
constexpr std::int64_t kGB = 1'000'000'000;

/// Plays the lifecycle: gives orders and keeps the last that it hears of each model.
struct Listener final : Inhabitant {
  void hear(const Message& message, Instant now, Outbox&) override {
    if (const auto* state = std::get_if<InstanceState>(&message)) states[state->model] = *state;
    if (const auto* memory = std::get_if<WorkerMemory>(&message)) last_memory = *memory;
    if (const auto* table = std::get_if<ModelTable>(&message)) tables[table->model] = *table;
    if (const auto* ended = std::get_if<OrderEnded>(&message)) ends.emplace_back(ended->code, now);
  }
  void wake(Timer, Instant, Outbox&) override {}

  std::map<ModelId, InstanceState> states;
  std::map<ModelId, ModelTable> tables;
  WorkerMemory last_memory;
  std::vector<std::pair<ErrorCode, Instant>> ends;
};

/// Three fine-tunes, 10 GB each and 6 GB of that in common for those of one base; 0.1 s to begin, 1 GB/s.
class OneWorker {
 public:
  explicit OneWorker(std::int64_t memory_gb) {
    for (const auto& [id, base] : {std::pair{"a", "x"}, std::pair{"b", "x"}, std::pair{"c", "y"}}) {
      ModelSpec model;
      model.id = ModelId(id);
      model.base = base;
      model.weights = Bytes(10 * kGB);
      model.kv_per_token = Bytes(1'000'000);
      model.prefill_fixed = 10'000.0;
      models_.push_back(model);
    }
    SimWorkerOptions options;
    options.name = kWorker;
    options.device.memory = Bytes(memory_gb * kGB);
    options.device.memory_share = 1.0;
    options.device.host_bytes_per_second = 1e9;
    options.device.activation_fixed = Micros(100'000);
    options.kv_floor_share = 0.0;
    options.shared_share = 0.6;
    options.table_hearers = {kLifecycle};
    for (const ModelSpec& model : models_) options.models.push_back(&model);
    auto worker = std::make_unique<SimWorker>(options, journal_);
    worker_ = worker.get();
    world_.settle(kWorker, std::move(worker));
    auto listener = std::make_unique<Listener>();
    listener_ = listener.get();
    world_.settle(kLifecycle, std::move(listener));
    world_.run_until(world_.now() + Millis(1));
  }

  void order(const char* model, Residency target, std::vector<ModelId> may_evict = {}) {
    Order order;
    order.operation = ++operations_;
    order.model = ModelId(model);
    order.target = target;
    order.may_evict = std::move(may_evict);
    world_.act(kLifecycle, [&](Instant, Outbox& out) { out.send(kWorker, order); });
  }
  void pass(std::int64_t millis) { world_.run_until(world_.now() + Millis(millis)); }
  void activate(const char* model) {
    order(model, Residency::active);
    pass(20'000);
  }
  const InstanceState& state(const char* model) { return listener_->states.at(ModelId(model)); }
  const Listener& heard() const { return *listener_; }
  const SimWorker& worker() const { return *worker_; }

 private:
  std::vector<ModelSpec> models_;
  Journal journal_{1};
  World world_{Micros(200)};
  SimWorker* worker_ = nullptr;
  Listener* listener_ = nullptr;
  std::uint64_t operations_ = 0;
};

TEST_CASE("a second fine-tune of a base copies only what is its own, and others of another base all") {
  OneWorker mesh(64);
  mesh.activate("a");
  CHECK(mesh.worker().wake_ups().took == Micros(10'100'000));
  CHECK(mesh.heard().last_memory.weights == Bytes(10 * kGB));
  CHECK(mesh.state("b").missing == Bytes(4 * kGB));
  CHECK(mesh.state("c").missing == Bytes(10 * kGB));
  mesh.activate("b");
  CHECK(mesh.worker().wake_ups().took == Micros(10'100'000 + 4'100'000));
  CHECK(mesh.heard().last_memory.weights == Bytes(14 * kGB));
  mesh.activate("c");
  CHECK(mesh.worker().wake_ups().copied == Bytes(24 * kGB));
  CHECK(mesh.heard().last_memory.weights == Bytes(24 * kGB));
  CHECK(mesh.worker().models_on() == 3);
}

TEST_CASE("who goes frees what nobody else has; the last of a base frees it all") {
  OneWorker mesh(64);
  mesh.activate("a");
  CHECK(mesh.state("a").own == Bytes(10 * kGB));
  mesh.activate("b");
  CHECK(mesh.state("a").own == Bytes(4 * kGB));
  mesh.order("a", Residency::warm);
  mesh.pass(10);
  CHECK(mesh.heard().last_memory.weights == Bytes(10 * kGB));
  CHECK(mesh.state("a").missing == Bytes(4 * kGB));
  CHECK(mesh.state("b").own == Bytes(10 * kGB));
  mesh.order("b", Residency::warm);
  mesh.pass(10);
  CHECK(mesh.heard().last_memory.weights == Bytes(0));
  CHECK(mesh.state("a").missing == Bytes(10 * kGB));
}

TEST_CASE("room counts the union: two of a base fit where two of different bases do not") {
  OneWorker mesh(14);
  mesh.activate("a");
  mesh.activate("b");
  CHECK(mesh.worker().models_on() == 2);
  mesh.activate("c");
  CHECK(mesh.heard().ends.back().first == ErrorCode::exhausted);
  CHECK(mesh.worker().models_on() == 2);
  // One of the two going frees 4 GB, which is not enough; both have to.
  mesh.order("c", Residency::active, {ModelId("a"), ModelId("b")});
  mesh.pass(20'000);
  CHECK(mesh.heard().ends.back().first == ErrorCode::none);
  CHECK(mesh.worker().models_on() == 1);
}

TEST_CASE("a load that is called off leaves the others what they share with it") {
  OneWorker mesh(64);
  mesh.order("a", Residency::active);
  mesh.pass(1'000);
  mesh.order("b", Residency::active);
  mesh.pass(1'000);
  mesh.order("a", Residency::warm);
  mesh.pass(20'000);
  CHECK(mesh.heard().last_memory.weights == Bytes(10 * kGB));
  CHECK(mesh.state("b").residency == Residency::active);
  CHECK(mesh.heard().ends.back().second >= Instant(Micros(14'200'000)));  // Both slots of the link.
}

TEST_CASE("tables name the common part alike for one base, and add up to the weights") {
  OneWorker mesh(64);
  const auto& tables = mesh.heard().tables;
  const auto segments = [&](const char* model) { return tables.at(ModelId(model)).segments; };
  REQUIRE(segments("a").size() == 2);
  CHECK(segments("a")[0].bytes == Bytes(4 * kGB));
  CHECK(segments("a")[1].bytes == Bytes(6 * kGB));
  CHECK(segments("a")[1].digest == segments("b")[1].digest);
  CHECK(segments("a")[1].digest != segments("c")[1].digest);
  CHECK(segments("a")[0].digest != segments("b")[0].digest);
}

}  // namespace
}  // namespace sangam::sim
