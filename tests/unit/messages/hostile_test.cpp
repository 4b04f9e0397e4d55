// Strangers, garbage and keys: what may not come in does not, is counted with its reason, and the node lives
// on.
#include <doctest/doctest.h>

#include <array>

#include "tests/unit/messages/mesh_fixture.hpp"
#include "tests/unit/messages/raw_peer.hpp"

using namespace sangam;
using namespace sangam::testing;
using wire::Fault;

namespace {

std::uint64_t refused(const Mesh& mesh, Fault fault) {
  return mesh.counters().refused[std::size_t(fault)];
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

MeshKeys new_keys() {
  std::array<char, 41> public_key{}, secret_key{};
  REQUIRE(zmq_curve_keypair(public_key.data(), secret_key.data()) == 0);
  return {public_key.data(), secret_key.data()};
}

MeshOptions with_keys(MeshOptions options, const MeshKeys& keys) {
  options.keys = keys;
  return patient(options);
}

}  // namespace

TEST_CASE("garbage is refused and counted by its reason, and the node lives on") {
  Registry registry;
  registry.add("a").add("b").add("c");
  Inbox in_a, in_c;
  Log log;
  MeshOptions options = patient(registry.options("a"));
  options.frame_max = Bytes(64 * 1024);
  auto a = open_mesh(options, log.sink()).value();
  auto c = open_mesh(patient(registry.options("c")), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  c->attach(ActorName("right"), Incarnation{1}, in_c.mailbox());
  REQUIRE(in_c.wait_presence(1));

  RawPeer b(registry, "b", "a", "anything");
  const auto good = wire::encode({.body = wire::Hello{NodeName("b"), Incarnation{1}, 1, false}}).value();
  auto other_version = good, unknown = good;
  other_version[2] += 1ull << 32;
  unknown[2] |= 0xffull << 48;
  b.say_bytes(bytes_of("GET / HTTP/1.1\r\n\r\n"));
  b.say_bytes(wire::bytes_of(good).first(24));
  b.say_bytes(bytes_of(std::string(70'000, '\0')));
  b.say_bytes(wire::bytes_of(other_version));
  b.say_bytes(wire::bytes_of(unknown));
  b.say_parts({"one", "two", "three"});
  b.say_bytes({});
  REQUIRE(eventually([&] { return refused(*a, Fault::truncated) == 3; }));
  CHECK(refused(*a, Fault::oversized) == 1);
  CHECK(refused(*a, Fault::unknown_version) == 1);
  CHECK(refused(*a, Fault::unknown_message) == 1);
  CHECK(refused(*a, Fault::malformed) == 1);
  CHECK(log.wait("mesh.frame_refused fault=oversized from=anything"));

  c->send(letter_to("left", 1));
  CHECK(in_a.wait_letters(1));
  CHECK(a->counters().peers_lost == 0);
}

TEST_CASE("a bad frame from a peer is counted and passed over, and the following ones are heard") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  auto a = open_mesh(patient(registry.options("a")), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  RawPeer b(registry, "b", "a", "b#1#1");
  b.link(1, "right");
  REQUIRE(in_a.wait_presence(1));
  b.say_bytes(bytes_of("not a frame at all"));
  auto letter = std::make_shared<Envelope>(letter_to("left", 4));
  letter->id = 1;
  b.say(EnvelopePtr(letter));
  b.say(wire::Heartbeat{3});
  REQUIRE(in_a.wait_letters(1));
  CHECK(refused(*a, Fault::truncated) == 1);
  CHECK(in_a.presence() == std::vector<std::string>{"+right/1"});
}

TEST_CASE("a node that is not in the registry, and one that does not greet, are turned away") {
  Registry registry;
  registry.add("a").add("b");
  auto a = registry.open("a");
  RawPeer b(registry, "b", "a", "b#1#1");
  b.say(wire::Heartbeat{0});
  CHECK(std::get<wire::Bye>(b.answer()).why == "this lane was not greeted");
  b.say(wire::Hello{NodeName("mallory"), Incarnation{1}, 1, false});
  CHECK(std::get<wire::Bye>(b.answer()).why == "node mallory is not in the registry of a");
  CHECK(a->counters().strangers == 2);
}

TEST_CASE("an older incarnation of a node that is present is turned away") {
  Registry registry;
  registry.add("a").add("b");
  Inbox in_a;
  auto a = open_mesh(patient(registry.options("a")), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  RawPeer b(registry, "b", "a", "b#7#1");
  b.link(7, "right");
  REQUIRE(in_a.wait_presence(1));
  b.say(wire::Hello{NodeName("b"), Incarnation{7}, 1, false});  // The same lane again: answered again.
  CHECK(std::holds_alternative<wire::Welcome>(b.answer()));
  zmq::context_t context;
  zmq::socket_t older(context, zmq::socket_type::dealer);
  older.set(zmq::sockopt::linger, 0);
  older.set(zmq::sockopt::rcvtimeo, int(std::chrono::milliseconds(kDeadline).count()));
  older.connect(registry.endpoint("a"));
  const auto hello = wire::encode({.body = wire::Hello{NodeName("b"), Incarnation{6}, 1, false}}).value();
  older.send(zmq::buffer(wire::bytes_of(hello).data(), wire::bytes_of(hello).size()), zmq::send_flags::none);
  zmq::message_t answer;
  REQUIRE(older.recv(answer).has_value());
  const auto frame = wire::decode({answer.data<std::byte>(), answer.size()}).value();
  CHECK(std::get<wire::Bye>(frame.body).why == "a newer incarnation of b is present");
}

TEST_CASE(
    "nodes with keys find each other, and an unknown key, no key or another node's name does not get in") {
  Registry registry(true);
  registry.add("a").add("b").add("c");
  const MeshKeys a_keys = new_keys(), b_keys = new_keys(), c_keys = new_keys(), unknown = new_keys();
  registry.set_key("a", a_keys.public_key);
  registry.set_key("b", b_keys.public_key);
  registry.set_key("c", c_keys.public_key);
  Inbox in_a, in_b;
  Log intruder_log;
  auto a = open_mesh(with_keys(registry.options("a"), a_keys), ignore_logs()).value();
  auto b = open_mesh(with_keys(registry.options("b"), b_keys), ignore_logs()).value();
  a->attach(ActorName("left"), Incarnation{1}, in_a.mailbox());
  b->attach(ActorName("right"), Incarnation{1}, in_b.mailbox());
  REQUIRE(in_a.wait_presence(1));
  a->send(letter_to("right", 1));
  REQUIRE(in_b.wait_letters(1));

  auto intruder = open_mesh(with_keys(registry.options("c"), unknown), intruder_log.sink()).value();
  Inbox in_intruder;
  intruder->attach(ActorName("intruder"), Incarnation{1}, in_intruder.mailbox());
  CHECK(intruder_log.wait("mesh.handshake_refused peer=a"));
  intruder.reset();

  Log keyless_log;
  auto keyless = open_mesh(registry.options("c"), keyless_log.sink()).value();
  CHECK(keyless_log.wait("mesh.handshake_refused peer=a"));
  keyless.reset();

  zmq::context_t context;
  zmq::socket_t liar(context, zmq::socket_type::dealer);
  liar.set(zmq::sockopt::linger, 0);
  liar.set(zmq::sockopt::rcvtimeo, int(std::chrono::milliseconds(kDeadline).count()));
  liar.set(zmq::sockopt::curve_serverkey, a_keys.public_key);
  liar.set(zmq::sockopt::curve_publickey, c_keys.public_key);
  liar.set(zmq::sockopt::curve_secretkey, c_keys.secret_key);
  liar.connect(registry.endpoint("a"));
  const auto hello = wire::encode({.body = wire::Hello{NodeName("b"), Incarnation{9}, 1, false}}).value();
  liar.send(zmq::buffer(wire::bytes_of(hello).data(), wire::bytes_of(hello).size()), zmq::send_flags::none);
  zmq::message_t answer;
  REQUIRE(liar.recv(answer).has_value());
  const auto frame = wire::decode({answer.data<std::byte>(), answer.size()}).value();
  CHECK(std::get<wire::Bye>(frame.body).why == "the key is not this node's");

  CHECK(in_a.presence() == std::vector<std::string>{"+right/1"});
  CHECK(a->counters().peers_lost == 0);
}

TEST_CASE("keys that do not belong together, and peers without one, are refused at the start") {
  Registry registry(true);
  registry.add("a").add("b");
  const MeshKeys keys = new_keys();
  auto mesh = open_mesh(with_keys(registry.options("a"), keys), ignore_logs());
  REQUIRE_FALSE(mesh.has_value());
  CHECK(mesh.error().context.find("has no public key") != std::string::npos);
  mesh = open_mesh(with_keys(registry.options("a"), {keys.public_key, new_keys().secret_key}), ignore_logs());
  REQUIRE_FALSE(mesh.has_value());
  CHECK(mesh.error().context == "mesh: public_key does not belong to secret_key");
}
