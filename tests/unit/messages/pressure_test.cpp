// Receivers that do not keep up: credit, holding, and giving up.
#include <doctest/doctest.h>

#include "tests/unit/messages/mesh_fixture.hpp"
#include "tests/unit/messages/raw_peer.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

constexpr Bytes kWindow{64 * 1024};

Envelope heavy_letter(const std::string& to, std::uint64_t number) {
  Submit submit;
  submit.request = RequestId{number};
  submit.model = ModelId("m");
  submit.prompt.assign(250, 7);  // About a kilobyte.
  submit.tokens_to = ActorName("tester");
  Envelope letter = letter_to(to, number);
  letter.message = std::move(submit);
  return letter;
}

std::uint64_t number_of(const Envelope& letter) {
  return std::uint64_t(std::get<Submit>(letter.message).request);
}

MeshOptions narrow(MeshOptions options, Bytes held_max) {
  options.frame_max = kWindow;
  options.window = kWindow;
  options.held_max = held_max;
  return patient(options);
}

}  // namespace

TEST_CASE("a receiver that keeps its letters stops its sender at the window, and nothing is lost") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a, in_b;
  auto a = open_mesh(narrow(registry.options("a"), Bytes(8 << 20)), ignore_logs()).value();
  auto b = open_mesh(narrow(registry.options("b"), Bytes(8 << 20)), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  b->attach(ActorName("right"), Incarnation{1}, in_b.mailbox());
  REQUIRE(in_a.wait_presence(1));
  constexpr std::uint64_t kLetters = 1000;
  for (std::uint64_t i = 0; i < kLetters; ++i) a->send(heavy_letter("right", i));

  // As many as the window holds arrive; the others wait at the sender.
  auto probe = std::make_shared<Envelope>(heavy_letter("right", 1));
  probe->id = 1;
  const auto frame = wire::encode({.body = EnvelopePtr(probe)}).value();
  const std::size_t fit = std::size_t(kWindow.count()) / wire::bytes_of(frame).size();
  REQUIRE(in_b.wait_letters(fit));
  CHECK(b->counters().unconsumed_bytes_now <= std::uint64_t(kWindow.count()));
  CHECK(a->counters().held_frames_now > kLetters / 2);

  std::uint64_t next = 0;
  while (next < kLetters) {
    REQUIRE(in_b.wait_letters(1));
    CHECK(b->counters().unconsumed_bytes_now <= std::uint64_t(kWindow.count()));
    for (const EnvelopePtr& letter : in_b.take_letters()) CHECK(number_of(*letter) == next++);
  }
  REQUIRE(eventually([&] { return b->counters().unconsumed_bytes_now == 0; }));
  CHECK(a->counters().held_frames_now == 0);
  CHECK(a->counters().held_bytes_now == 0);
  CHECK(a->counters().peers_lost == 0);
  CHECK(in_a.presence().size() == 1);
}

TEST_CASE("a peer for which more waits than may be held is lost as a whole, never a letter in between") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a, in_b;
  auto a = open_mesh(narrow(registry.options("a"), Bytes(256 * 1024)), ignore_logs()).value();
  auto b = open_mesh(narrow(registry.options("b"), Bytes(256 * 1024)), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  b->attach(ActorName("right"), Incarnation{1}, in_b.mailbox());
  REQUIRE(in_a.wait_presence(1));
  REQUIRE(in_b.wait_presence(1));
  for (std::uint64_t i = 0; i < 1000; ++i) a->send(heavy_letter("right", i));

  // Both ends hear of the loss, and then of the return.
  REQUIRE(in_a.wait_presence(3));
  REQUIRE(in_b.wait_presence(3));
  CHECK(in_a.presence()[1] == "-right/1 node b lost: more letters wait for its credit than may be held");
  CHECK(in_a.presence()[2] == "+right/1");
  CHECK(in_b.presence()[1].starts_with("-left/1"));
  CHECK(in_b.presence()[2] == "+left/1");
  CHECK(a->counters().letters_lost > 0);
  std::uint64_t gaps = 0, next = 0;
  for (const EnvelopePtr& letter : in_b.letters()) {
    CHECK(number_of(*letter) >= next);
    gaps += number_of(*letter) != next;
    next = number_of(*letter) + 1;
  }
  CHECK(gaps <= a->counters().peers_lost);

  // What the actor still keeps from before counts against the window of the new lane, which serves again when
  // the actor lets go.
  CHECK(b->counters().unconsumed_bytes_now <= std::uint64_t(kWindow.count()));
  REQUIRE(eventually([&] {
    for (const EnvelopePtr& letter : in_b.take_letters()) {
      if (number_of(*letter) == 5000) return true;
    }
    if (a->counters().held_frames_now == 0) a->send(heavy_letter("right", 5000));
    return false;
  }));
}

TEST_CASE("a peer that sends beyond its credit is lost") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  auto a = open_mesh(narrow(registry.options("a"), Bytes(8 << 20)), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  RawPeer b(registry, "b", "a", "b#1#1");
  b.link(1, "right");
  CHECK(b.granted() == kWindow);
  REQUIRE(in_a.wait_presence(1));
  for (std::uint64_t i = 1; i <= 100; ++i) {
    auto letter = std::make_shared<Envelope>(heavy_letter("left", i));
    letter->id = i;
    b.say(EnvelopePtr(letter));
  }
  REQUIRE(in_a.wait_presence(2));
  CHECK(in_a.presence()[1].starts_with("-right/1 node b lost: it sent beyond its credit"));
  CHECK(a->counters().unconsumed_bytes_now <= std::uint64_t(kWindow.count()));
}

TEST_CASE("a letter that no peer would take is refused at its sender, and the lane lives on") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a, in_b;
  Log log;
  auto a = open_mesh(narrow(registry.options("a"), Bytes(8 << 20)), log.sink()).value();
  auto b = open_mesh(narrow(registry.options("b"), Bytes(8 << 20)), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  b->attach(ActorName("right"), Incarnation{1}, in_b.mailbox());
  REQUIRE(in_a.wait_presence(1));
  Envelope too_large = heavy_letter("right", 1);
  std::get<Submit>(too_large.message).prompt.resize(20'000);
  a->send(too_large);
  REQUIRE(log.wait("mesh.letter_refused to=b fault=oversized"));
  CHECK(a->counters().letters_refused == 1);
  a->send(heavy_letter("right", 2));
  REQUIRE(in_b.wait_letters(1));
  CHECK(number_of(*in_b.letters()[0]) == 2);
}
