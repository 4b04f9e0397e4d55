// Two and three nodes in one process: letters, presence, loss and return.
#include <doctest/doctest.h>

#include "tests/unit/messages/mesh_fixture.hpp"

using namespace sangam;
using namespace sangam::testing;

TEST_CASE("two nodes find each other's actors and exchange letters in order, over ipc and tcp") {
  for (const bool over_tcp : {false, true}) {
    CAPTURE(over_tcp);
    Registry registry(over_tcp);
    registry.add("a").add("b");
    Inbox in_a, in_b;
    auto a = registry.open("a"), b = registry.open("b");
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
