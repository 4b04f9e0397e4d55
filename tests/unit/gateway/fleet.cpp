// Who is there, and counts that survive restarts.
#include "gateway/core/fleet.hpp"

#include <doctest/doctest.h>

using namespace sangam;

namespace {

const ModelId kModel("m");
const ActorName kOne("worker/1");
const ActorName kTwo("worker/2");

InstanceStatus status(const ActorName& worker, std::int64_t running, std::int64_t used, std::uint64_t hits) {
  return {.worker = worker,
          .model = kModel,
          .running = running,
          .waiting = 1,
          .kv_used = Pages{used},
          .kv_total = Pages{10},
          .prefix_hits = hits};
}

}  // namespace

TEST_CASE("a model can run when its queue and one instance are there") {
  MeshView fleet;
  fleet.ready({.worker = kOne, .model = kModel, .weights_digest = {}});
  CHECK_FALSE(fleet.can_run(kModel));
  fleet.found(queue_of(kModel));
  CHECK(fleet.can_run(kModel));
  fleet.lost(kOne);
  CHECK_FALSE(fleet.can_run(kModel));
}

TEST_CASE("gauges are sums over workers and fall when a worker is lost") {
  MeshView fleet;
  fleet.status(status(kOne, 3, 5, 0));
  fleet.status(status(kTwo, 2, 2, 0));
  fleet.status(QueueStatus{.model = kModel, .waiting = 4});
  CHECK(fleet.state_of(kModel).running == 5);
  CHECK(fleet.state_of(kModel).waiting == 6);
  CHECK(fleet.state_of(kModel).kv_used == doctest::Approx(0.35));
  fleet.lost(kOne);
  CHECK(fleet.state_of(kModel).running == 2);
  CHECK(fleet.state_of(kModel).kv_used == doctest::Approx(0.2));
  CHECK(fleet.state_of(ModelId("other")).running == 0);
}

TEST_CASE("counts go on rising when a worker starts anew") {
  MeshView fleet;
  fleet.status(status(kOne, 0, 0, 100));
  fleet.status(status(kOne, 0, 0, 130));
  fleet.lost(kOne);
  CHECK(fleet.state_of(kModel).prefix_hits == 130);
  fleet.status(status(kOne, 0, 0, 7));
  CHECK(fleet.state_of(kModel).prefix_hits == 137);
}

TEST_CASE("a snapshot has each worker's last letter and each model's shape, and nothing of who was lost") {
  MeshView fleet;
  Telemetry letter;
  letter.worker = kOne;
  letter.incarnation = Incarnation{1};
  letter.sequence = 5;
  letter.steps = 50;
  fleet.telemetry(letter);
  letter.sequence = 4;
  letter.steps = 40;
  fleet.telemetry(letter);  // Late.
  fleet.table({kModel, 2, Bytes(30), {{1, Bytes(100)}, {2, Bytes(200)}}});
  MeshSnapshot snapshot = fleet.snapshot();
  REQUIRE(snapshot.workers.size() == 1);
  CHECK(snapshot.workers[0].steps == 50);
  CHECK(snapshot.shapes.at(kModel).weights == Bytes(300));
  const std::string text = snapshot_json(snapshot);
  CHECK(text.find(R"("model":"m","devices":2,"weights_bytes":300,"kv_bytes_per_token":30,"traffic":null,"costs":null)") !=
        std::string::npos);
  letter.incarnation = Incarnation{2};
  letter.sequence = 1;
  letter.steps = 3;
  fleet.telemetry(letter);
  CHECK(fleet.snapshot().workers[0].steps == 3);
  fleet.lost(kOne);
  CHECK(fleet.snapshot().workers.empty());
}
