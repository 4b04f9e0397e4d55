// The post office within one process: delivery, presence, and what happens to letters for those who are away.
#include <doctest/doctest.h>

#include <thread>

#include "tests/unit/messages/mesh_fixture.hpp"

using namespace sangam;
using namespace sangam::testing;

TEST_CASE("a letter reaches the actor that it is addressed to, with an id of its own") {
  Inbox inbox;
  auto mesh = open_mesh({}, ignore_logs()).value();
  mesh->attach(ActorName("b"), Incarnation{1}, inbox.mailbox());
  mesh->send(letter_to("b", 7));
  mesh->send(letter_to("b", 8));
  REQUIRE(inbox.letters().size() == 2);
  CHECK(request_of(*inbox.letters()[0]) == 7);
  CHECK(request_of(*inbox.letters()[1]) == 8);
  CHECK(inbox.letters()[0]->id != 0);
  CHECK(inbox.letters()[0]->id != inbox.letters()[1]->id);
}

TEST_CASE("a letter to an actor that is away is dropped and counted") {
  auto mesh = open_mesh({}, ignore_logs()).value();
  mesh->send(letter_to("nobody", 1));
  CHECK(mesh->counters().letters_away == 1);
  CHECK(mesh->counters().letters_local == 0);
}

TEST_CASE("a new actor hears of those who are there, and they hear of it") {
  Inbox a, b;
  auto mesh = open_mesh({}, ignore_logs()).value();
  mesh->attach(ActorName("a"), Incarnation{1}, a.mailbox());
  mesh->attach(ActorName("b"), Incarnation{4}, b.mailbox());
  CHECK(a.presence() == std::vector<std::string>{"+b/4"});
  CHECK(b.presence() == std::vector<std::string>{"+a/1"});
  mesh->detach(ActorName("b"), "done");
  CHECK(a.presence() == std::vector<std::string>{"+b/4", "-b/4 done"});
  mesh->detach(ActorName("b"), "again");
  CHECK(a.presence().size() == 2);
}

TEST_CASE("an actor that attaches again under a higher incarnation is lost first, then found") {
  Inbox a, former, latter;
  auto mesh = open_mesh({}, ignore_logs()).value();
  mesh->attach(ActorName("a"), Incarnation{1}, a.mailbox());
  mesh->attach(ActorName("w"), Incarnation{1}, former.mailbox());
  mesh->attach(ActorName("w"), Incarnation{2}, latter.mailbox());
  CHECK(a.presence() == std::vector<std::string>{"+w/1", "-w/1 replaced by incarnation 2", "+w/2"});
  mesh->send(letter_to("w", 5));
  CHECK(former.letters().empty());
  CHECK(latter.letters().size() == 1);
}

TEST_CASE("all who are present are listed in the order of their names") {
  Inbox inbox;
  auto mesh = open_mesh({}, ignore_logs()).value();
  for (const char* name : {"worker/2", "queue/m", "scheduler"}) {
    mesh->attach(ActorName(name), Incarnation{9}, inbox.mailbox());
  }
  std::vector<std::string> names;
  for (const ActorFound& found : mesh->present()) names.push_back(found.actor.text());
  CHECK(names == std::vector<std::string>{"queue/m", "scheduler", "worker/2"});
}

TEST_CASE("letters of one thread arrive in order while other threads send and actors come and go") {
  Inbox inbox, passer;
  auto mesh = open_mesh({}, ignore_logs()).value();
  mesh->attach(ActorName("b"), Incarnation{1}, inbox.mailbox());
  constexpr std::uint64_t kEach = 2000;
  auto sender = [&](std::uint64_t who) {
    for (std::uint64_t i = 0; i < kEach; ++i) mesh->send(letter_to("b", who * kEach + i));
  };
  std::thread first(sender, 0), second(sender, 1);
  for (std::uint64_t i = 1; i < 200; ++i) mesh->attach(ActorName("p"), Incarnation{i}, passer.mailbox());
  first.join();
  second.join();
  std::uint64_t next[2] = {0, kEach};
  for (const EnvelopePtr& letter : inbox.letters()) {
    CHECK(request_of(*letter) == next[request_of(*letter) / kEach]++);
  }
  CHECK(next[0] == kEach);
  CHECK(next[1] == 2 * kEach);
}
