// Peers that die, freeze, or come back: other processes, killed and stopped for real.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/unit/messages/mesh_fixture.hpp"
#include "tests/unit/messages/raw_peer.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

/// A process that hosts the node "b" with the actor "right". Start it before any mesh of the parent's own,
/// since a fork takes no threads along.
class Child {
 public:
  Child(const MeshOptions& options, std::uint64_t incarnation) : pid_(::fork()) {
    if (pid_ == 0) live(options, incarnation);
    REQUIRE(pid_ > 0);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { REQUIRE(::kill(pid_, signal) == 0); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  [[noreturn]] static void live(const MeshOptions& options, std::uint64_t incarnation) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto mesh = open_mesh(options, ignore_logs());
    if (!mesh) ::_exit(1);
    (*mesh)->attach(ActorName("right"), Incarnation{incarnation}, [](const EnvelopePtr&) {});
    for (;;) ::pause();
  }

  pid_t pid_;
};

}  // namespace

TEST_CASE("a killed process is noticed by its connection, long before its silence tells") {
  for (const bool over_tcp : {false, true}) {
    CAPTURE(over_tcp);
    Registry registry(over_tcp);
    registry.add("a").add("b");
    Child b(patient(registry.options("b")), 1);
    Inbox in_a;
    auto a = open_mesh(patient(registry.options("a")), ignore_logs()).value();
    a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
    REQUIRE(in_a.wait_presence(1));
    b.kill();
    REQUIRE(in_a.wait_presence(2));
    CHECK(in_a.presence() == std::vector<std::string>{"+right/1", "-right/1 node b lost: disconnected"});
    CHECK(a->counters().peers_now == 0);
    a->send(letter_to("right", 1));
    CHECK(a->counters().letters_away == 1);
  }
}

TEST_CASE("a killed process that is started again at the same path is found under its new incarnation") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  Child first(registry.options("b", 1), 1);
  std::unique_ptr<Mesh> a = open_mesh(registry.options("a"), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  REQUIRE(in_a.wait_presence(1));
  first.kill();
  Inbox in_b;
  auto second = registry.open("b", 2);  // Takes over the path that the killed one left behind.
  second->attach(ActorName("right"), Incarnation{2}, in_b.mailbox());
  REQUIRE(in_a.wait_presence(3));
  CHECK(in_a.presence()[1].starts_with("-right/1"));
  CHECK(in_a.presence()[2] == "+right/2");
  a->send(letter_to("right", 8));
  REQUIRE(in_b.wait_letters(1));
}

TEST_CASE("a frozen process is lost by its silence and found again when it thaws") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  Child b(registry.options("b"), 1);
  auto a = registry.open("a");
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  REQUIRE(in_a.wait_presence(1));
  b.send(SIGSTOP);
  REQUIRE(in_a.wait_presence(2));
  CHECK(in_a.presence()[1].starts_with("-right/1 node b lost: silent for"));
  b.send(SIGCONT);
  REQUIRE(in_a.wait_presence(3));
  CHECK(in_a.presence()[2] == "+right/1");
}

TEST_CASE("a peer that comes back before its loss was noticed is lost first, then found") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  auto a = open_mesh(patient(registry.options("a")), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  RawPeer b(registry, "b", "a", "b#1#1");
  b.link(1, "right");
  REQUIRE(in_a.wait_presence(1));
  // The same connection is still up; only the Hello tells.
  zmq::context_t context;
  zmq::socket_t again(context, zmq::socket_type::dealer);
  again.set(zmq::sockopt::linger, 0);
  again.set(zmq::sockopt::routing_id, "b#2#1");
  again.connect(registry.endpoint("a"));
  const auto hello = wire::encode({.body = wire::Hello{NodeName("b"), Incarnation{2}, 1, false}}).value();
  again.send(zmq::buffer(wire::bytes_of(hello).data(), wire::bytes_of(hello).size()), zmq::send_flags::none);
  REQUIRE(in_a.wait_presence(2));
  CHECK(in_a.presence()[1] == "-right/1 node b lost: it started anew");
  // The former one speaks into the void and is told so.
  b.say(wire::Heartbeat{1});
  for (;;) {
    const wire::Body answer = b.answer();
    if (!std::holds_alternative<wire::Bye>(answer)) continue;
    CHECK(std::get<wire::Bye>(answer).why == "this lane was not greeted");
    break;
  }
}

TEST_CASE("a peer whose frames went missing is lost") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  auto a = open_mesh(patient(registry.options("a")), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  RawPeer b(registry, "b", "a", "b#1#1");
  b.link(1, "right");
  b.say(wire::Heartbeat{1});  // ActorOpened came before: true.
  REQUIRE(in_a.wait_presence(1));
  b.say(wire::Heartbeat{5});
  REQUIRE(in_a.wait_presence(2));
  CHECK(in_a.presence()[1] == "-right/1 node b lost: frames were lost on the way: sent=5 received=2");
}

TEST_CASE("a socket file that a dead process left behind is taken over") {
  Registry registry;
  registry.add("a").add("b");
  const std::string path = registry.endpoint("a").substr(std::string("ipc://").size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
  REQUIRE(::access(path.c_str(), F_OK) == 0);
  CHECK(open_mesh(registry.options("a"), ignore_logs()).has_value());
}
