// Two and three nodes in one process: letters, presence, loss and return.
#include <doctest/doctest.h>

#include "tests/unit/messages/mesh_fixture.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

std::unique_ptr<Mesh> open_patient(const Registry& registry, const std::string& node,
                                   std::uint64_t incarnation = 1) {
  return open_mesh(patient(registry.options(node, incarnation)), ignore_logs()).value();
}

}  // namespace

TEST_CASE("two nodes find each other's actors and exchange letters in order, over ipc and tcp") {
  for (const bool over_tcp : {false, true}) {
    CAPTURE(over_tcp);
    Registry registry(over_tcp);
    registry.add("a").add("b");
    Inbox in_a, in_b;
    auto a = open_patient(registry, "a"), b = open_patient(registry, "b");
    a->attach(ActorName("left"), Incarnation{3}, in_a.mailbox());
    b->attach(ActorName("right"), Incarnation{5}, in_b.mailbox());
    REQUIRE(in_a.wait_presence(1));
    REQUIRE(in_b.wait_presence(1));
    CHECK(in_a.presence() == std::vector<std::string>{"+right/5"});
    CHECK(in_b.presence() == std::vector<std::string>{"+left/3"});
    constexpr std::uint64_t kLetters = 3000;
    for (std::uint64_t i = 0; i < kLetters; ++i) {
      a->send(letter_to("right", i));
      b->send(letter_to("left", i));
    }
    REQUIRE(in_b.wait_letters(kLetters));
    REQUIRE(in_a.wait_letters(kLetters));
    for (std::uint64_t i = 0; i < kLetters; ++i) {
      CHECK(request_of(*in_a.letters()[i]) == i);
      CHECK(request_of(*in_b.letters()[i]) == i);
    }
  }
}

TEST_CASE("an actor that closes is lost at the peers after its last letter") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a, in_b;
  auto a = open_patient(registry, "a"), b = open_patient(registry, "b");
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  b->attach(ActorName("right"), Incarnation{1}, in_b.mailbox());
  REQUIRE(in_a.wait_presence(1));
  REQUIRE(in_b.wait_presence(1));
  for (std::uint64_t i = 0; i < 100; ++i) a->send(letter_to("right", i));
  a->detach(ActorName("left"), "done");
  REQUIRE(in_b.wait_presence(2));
  CHECK(in_b.letters().size() == 100);
  CHECK(in_b.presence() == std::vector<std::string>{"+left/1", "-left/1 done"});
}

TEST_CASE("three nodes see all actors, and each letter goes to one") {
  Registry registry;
  registry.add("a").add("b").add("c");
  Inbox inbox[3];
  std::unique_ptr<Mesh> nodes[3];
  const char* names[3] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) nodes[i] = open_patient(registry, names[i]);
  for (int i = 0; i < 3; ++i) nodes[i]->attach(ActorName(names[i]), Incarnation{1}, inbox[i].mailbox());
  for (auto& in : inbox) REQUIRE(in.wait_presence(2));
  for (auto& node : nodes) CHECK(node->present().size() == 3);
  for (std::uint64_t i = 0; i < 3; ++i) nodes[i]->send(letter_to(names[(i + 1) % 3], i));
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(inbox[(i + 1) % 3].wait_letters(1));
    CHECK(request_of(*inbox[(i + 1) % 3].letters()[0]) == i);
  }
}

TEST_CASE("a node that stops says goodbye, and is found again under its next incarnation") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a, in_b;
  auto a = open_patient(registry, "a");
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  for (std::uint64_t incarnation = 1; incarnation <= 3; ++incarnation) {
    auto b = open_patient(registry, "b", incarnation);
    b->attach(ActorName("right"), Incarnation{incarnation}, in_b.mailbox());
    REQUIRE(in_a.wait_presence(2 * incarnation - 1));
    CHECK(in_a.presence().back() == "+right/" + std::to_string(incarnation));
    b.reset();
    REQUIRE(in_a.wait_presence(2 * incarnation));
    CHECK(in_a.presence().back().starts_with("-right/" + std::to_string(incarnation)));
  }
}

TEST_CASE("an actor's name belongs to the higher incarnation") {
  Registry registry;
  registry.add("a").add("b").add("c");
  Inbox in_a, first, second;
  Log log;
  auto a = open_mesh(patient(registry.options("a")), log.sink()).value();
  auto b = open_patient(registry, "b"), c = open_patient(registry, "c");
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  b->attach(ActorName("right"), Incarnation{1}, first.mailbox());
  REQUIRE(in_a.wait_presence(1));
  c->attach(ActorName("right"), Incarnation{2}, second.mailbox());
  REQUIRE(in_a.wait_presence(3));
  CHECK(in_a.presence() ==
        std::vector<std::string>{"+right/1", "-right/1 replaced by incarnation 2", "+right/2"});
  a->send(letter_to("right", 1));
  REQUIRE(second.wait_letters(1));
  CHECK(first.letters().empty());
  b->detach(ActorName("right"), "superseded");
  b->attach(ActorName("right"), Incarnation{2}, first.mailbox());
  REQUIRE(log.wait("mesh.name_taken actor=right peer=b"));
}

TEST_CASE("options that cannot work are refused with the reason") {
  Registry registry;
  registry.add("a").add("b");
  auto refusal = [](const MeshOptions& options) {
    auto mesh = open_mesh(options, ignore_logs());
    REQUIRE_FALSE(mesh.has_value());
    return mesh.error();
  };
  MeshOptions options = registry.options("a");
  options.window = options.frame_max - Bytes(1);
  CHECK(refusal(options).code == ErrorCode::invalid_input);
  options = registry.options("a");
  options.peers.push_back(options.peers.back());
  CHECK(refusal(options).context == "mesh: peer b is listed twice");
  options = registry.options("a");
  options.node = NodeName(std::string(201, 'n'));
  CHECK(refusal(options).code == ErrorCode::invalid_input);
  options = registry.options("a");
  options.heartbeat_timeout = options.heartbeat_interval;
  CHECK(refusal(options).code == ErrorCode::invalid_input);
  options = registry.options("a");
  options.peers[1].endpoint = "carrier-pigeon://b";
  CHECK(refusal(options).code == ErrorCode::invalid_input);
  options = registry.options("a");
  options.listen = {"ipc:///" + std::string(108, 'x')};
  CHECK(refusal(options).code == ErrorCode::invalid_input);
}

TEST_CASE("an endpoint that somebody listens at is refused, over ipc and tcp") {
  for (const bool over_tcp : {false, true}) {
    CAPTURE(over_tcp);
    Registry registry(over_tcp);
    registry.add("a").add("b");
    auto first = open_patient(registry, "a");
    auto second = open_mesh(registry.options("a"), ignore_logs());
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().code == ErrorCode::unavailable);
    CHECK(second.error().context.find(registry.endpoint("a")) != std::string::npos);
  }
}

TEST_CASE("a port chosen by the system is told") {
  Registry registry(true);
  registry.add("a").add("b");
  MeshOptions options = registry.options("a");
  options.listen = {"tcp://127.0.0.1:*"};
  auto mesh = open_mesh(options, ignore_logs()).value();
  REQUIRE(mesh->endpoints().size() == 1);
  CHECK(mesh->endpoints()[0].starts_with("tcp://127.0.0.1:"));
  CHECK(mesh->endpoints()[0] != "tcp://127.0.0.1:*");
}
