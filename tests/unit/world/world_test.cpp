// Order, timers and death in virtual time.
#include "sim/world/world.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace sangam::sim {
namespace {

/// Writes down what it hears and when.
struct Scribe final : Inhabitant {
  void hear(const Message& message, Instant now, Outbox&) override {
    if (const auto* wanted = std::get_if<Wanted>(&message)) heard.emplace_back(now, wanted->waiting);
    if (const auto* lost = std::get_if<ActorLost>(&message)) losses.push_back(lost->actor);
    if (const auto* found = std::get_if<ActorFound>(&message)) found_actors.push_back(found->actor);
  }
  void wake(Timer timer, Instant now, Outbox&) override { woken.emplace_back(now, std::uint64_t(timer)); }

  std::vector<std::pair<Instant, std::int64_t>> heard;
  std::vector<std::pair<Instant, std::uint64_t>> woken;
  std::vector<ActorName> losses;
  std::vector<ActorName> found_actors;
};

const ActorName kA{"a"};
const ActorName kB{"b"};

Instant at(std::int64_t micros) { return Instant(Micros(micros)); }

Scribe& settle(World& world, const ActorName& name, Incarnation incarnation = Incarnation{1}) {
  auto scribe = std::make_unique<Scribe>();
  Scribe& own = *scribe;
  world.settle(name, std::move(scribe), incarnation);
  return own;
}

void say(World& world, const ActorName& from, const ActorName& to, std::int64_t number) {
  world.act(from, [&](Instant, Outbox& out) { out.send(to, Wanted{ModelId("m"), number}); });
}

TEST_CASE("letters take their time and keep their order; whoever is there hears of everyone") {
  World world(Micros(200));
  const Scribe& a = settle(world, kA);
  const Scribe& b = settle(world, kB);
  say(world, kA, kB, 1);
  say(world, kA, kB, 2);
  world.run_until(at(100));
  say(world, kB, kA, 3);
  world.run_until(at(1'000));
  CHECK(b.heard == std::vector<std::pair<Instant, std::int64_t>>{{at(200), 1}, {at(200), 2}});
  CHECK(a.heard == std::vector<std::pair<Instant, std::int64_t>>{{at(300), 3}});
  CHECK(a.found_actors == std::vector{kB});
  CHECK(b.found_actors == std::vector{kA});
  CHECK(world.now() == at(1'000));
}

TEST_CASE("a timer that is set again has moved, and each wakes once") {
  World world(Micros(1));
  const Scribe& a = settle(world, kA);
  world.act(kA, [](Instant, Outbox& out) {
    out.set_timer(Timer{1}, at(10));
    out.set_timer(Timer{2}, at(20));
    out.set_timer(Timer{1}, at(30));
  });
  world.run_until(at(100));
  CHECK(a.woken == std::vector<std::pair<Instant, std::uint64_t>>{{at(20), 2}, {at(30), 1}});
}

TEST_CASE("what was on the way to or from the dead is lost, also when they return before it would have come") {
  World world(Micros(200));
  const Scribe& a = settle(world, kA);
  settle(world, kB);
  world.run_until(at(1'000));
  say(world, kB, kA, 1);
  say(world, kA, kB, 2);
  world.kill(kB, "test");
  const Scribe& again = settle(world, kB, Incarnation{2});
  world.run_until(at(2'000));
  CHECK(a.heard.empty());
  CHECK(again.heard.empty());
  CHECK(a.losses == std::vector{kB});
  CHECK(a.found_actors.size() == 2);
  say(world, kA, kB, 3);
  world.run_until(at(3'000));
  CHECK(again.heard.size() == 1);
}

}  // namespace
}  // namespace sangam::sim
