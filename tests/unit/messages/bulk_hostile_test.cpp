// Bare sockets in the place of either end of a bulk session: what makes no sense is refused with its reason, counted,
// and the node lives on.
#include <doctest/doctest.h>

#include <zmq.hpp>

#include "messages/wire/bulk_frame.hpp"
#include "tests/unit/messages/bulk_fixture.hpp"

using namespace sangam;
using namespace sangam::testing;
using wire::Fault;

namespace {

std::uint64_t refused(const Bulk& bulk, Fault fault) {
  return bulk.counters().refused[std::size_t(fault)];
}

std::string text_of(const wire::FrameBytes& frame) {
  const auto bytes = wire::bytes_of(frame);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text_of(wire::BulkBody body) {
  return text_of(wire::encode({.body = std::move(body)}).value());
}

/// A socket that waits no longer than a test may.
zmq::socket_t bare(zmq::context_t& context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::rcvtimeo, int(std::chrono::milliseconds(kDeadline).count()));
  socket.set(zmq::sockopt::sndtimeo, int(std::chrono::milliseconds(kDeadline).count()));
  return socket;
}

void say(zmq::socket_t& socket, const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto flags = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    REQUIRE(socket.send(zmq::buffer(parts[i]), flags).has_value());
  }
}

wire::BulkBody hear(zmq::socket_t& socket) {
  zmq::message_t frame;
  REQUIRE(socket.recv(frame).has_value());
  return wire::decode_bulk({frame.data<std::byte>(), frame.size()}).value().body;
}

/// The first answer that is no sign of life.
wire::BulkBody answer(zmq::socket_t& socket) {
  wire::BulkBody body = hear(socket);
  while (std::holds_alternative<wire::BulkAlive>(body)) body = hear(socket);
  return body;
}

/// A node "a" that offers "x", and a bare reader in the place of "b".
struct Server {
  Server() {
    registry.add("a").add("b");
    shelf.put("x", bytes_by(100, 1));
    node = open_bulk(bulk_options(patient(registry.options("a"))), ignore_logs()).value();
    node->offer(kOwner, shelf);
    reader.connect(registry.endpoint("a"));
  }
  void greet() {
    say(reader, {text_of(wire::BulkOpen{NodeName("b"), Incarnation{1}})});
    REQUIRE(std::get<wire::BulkAlive>(hear(reader)).incarnation == Incarnation{1});
  }
  void still_serves() {
    say(reader, {text_of(wire::BulkCredit{1000})});
    say(reader, {text_of(wire::BulkAsk{1, kOwner, BlobName("x")})});
    CHECK(std::get<wire::BulkPart>(answer(reader)).bytes == Bytes(100));
    zmq::message_t bytes;
    REQUIRE(reader.recv(bytes).has_value());
    const auto expected = bytes_by(100, 1);
    CHECK(std::equal(expected.begin(), expected.end(), bytes.data<std::byte>(), bytes.data<std::byte>() + bytes.size()));
  }

  Registry registry;
  NamedBytes shelf;
  std::unique_ptr<Bulk> node;
  zmq::context_t context;
  zmq::socket_t reader = bare(context, zmq::socket_type::dealer);
};

/// A bare server in the place of "a", and a pull of "b" that has asked it for "x" of up to 100 bytes.
struct Reader {
  Reader() {
    registry.add("a").add("b");
    server.bind(registry.endpoint("a"));
    BulkOptions options = bulk_options(patient(registry.options("b")));
    options.part_max = Bytes(1000);
    options.parts_in_flight = 4;
    node = open_bulk(options, ignore_logs()).value();
    pull = node->open(kOwner).value();
    pull->ask(BlobName("x"), Bytes(100));
    while (!id.size()) {
      REQUIRE(pull->next(Millis(1)).has_value());
      (void)server.recv(id, zmq::recv_flags::dontwait);
    }
    zmq::message_t open;
    REQUIRE(server.recv(open).has_value());
  }
  void answer(const std::vector<std::string>& parts) {
    std::vector<std::string> whole{id.to_string()};
    whole.insert(whole.end(), parts.begin(), parts.end());
    say(server, whole);
  }

  Registry registry;
  zmq::context_t context;
  zmq::socket_t server = bare(context, zmq::socket_type::router);
  zmq::message_t id;
  std::unique_ptr<Bulk> node;
  std::unique_ptr<BlobPull> pull;
};

wire::BulkPart good_part() {
  return {1, Bytes(10), Bytes(0), Bytes(10), {}};
}

}  // namespace

TEST_CASE("garbage from a reader is counted by its reason, and its session and the node live on") {
  Server a;
  a.greet();
  const wire::FrameBytes good = wire::encode({.body = wire::BulkCredit{1}}).value();
  auto other_version = good, unknown = good;
  other_version[2] += 1ull << 32;
  unknown[2] |= 0xffull << 48;
  say(a.reader, {"GET / HTTP/1.1\r\n\r\n"});
  say(a.reader, {text_of(good).substr(0, 24)});
  say(a.reader, {std::string(std::size_t(wire::kBulkFrameMax.count()) + 8, '\0')});
  say(a.reader, {text_of(other_version)});
  say(a.reader, {text_of(unknown)});
  say(a.reader, {"one", "two", "three"});
  say(a.reader, {text_of(good_part())});
  REQUIRE(eventually([&] { return refused(*a.node, Fault::invalid_value) == 1; }));
  CHECK(refused(*a.node, Fault::truncated) == 2);
  CHECK(refused(*a.node, Fault::oversized) == 1);
  CHECK(refused(*a.node, Fault::unknown_version) == 1);
  CHECK(refused(*a.node, Fault::unknown_message) == 1);
  CHECK(refused(*a.node, Fault::malformed) == 1);
  a.still_serves();
}

TEST_CASE("who is not in the registry, or has not opened its session, is turned away with the reason") {
  Server a;
  say(a.reader, {text_of(wire::BulkCredit{1})});
  CHECK(std::get<wire::BulkClose>(answer(a.reader)).why == "this session is not open");
  say(a.reader, {text_of(wire::BulkOpen{NodeName("mallory"), Incarnation{1}})});
  CHECK(std::get<wire::BulkClose>(answer(a.reader)).why == "node mallory is not in the registry of a");
  CHECK(a.node->counters().strangers == 2);
  a.greet();
  a.still_serves();
}

TEST_CASE("an ask that does not follow ends the session") {
  Server a;
  a.greet();
  say(a.reader, {text_of(wire::BulkAsk{5, kOwner, BlobName("x")})});
  CHECK(std::get<wire::BulkClose>(answer(a.reader)).why == "ask 5 does not follow ask 0");
  CHECK(eventually([&] { return a.node->counters().sessions_now == 0; }));
}

TEST_CASE("what a server says is held against what was asked; nonsense ends the pull as corrupt and is counted") {
  const std::string ten(10, 'x');
  const auto with = [](auto change) {
    wire::BulkPart part = good_part();
    change(part);
    return text_of(part);
  };
  const std::vector<std::pair<Fault, std::vector<std::string>>> cases{
      {Fault::truncated, {"nothing like a frame"}},
      {Fault::malformed, {with([](auto&) {})}},
      {Fault::malformed, {with([](auto&) {}), ten, ten}},
      {Fault::truncated, {with([](auto&) {}), ten.substr(1)}},
      {Fault::oversized, {with([](auto&) {}), ten + "x"}},
      {Fault::oversized, {with([](auto& p) { p.size = p.bytes = Bytes(1001); }), std::string(1001, 'x')}},
      {Fault::invalid_value, {with([](auto& p) { p.number = 2; }), ten}},
      {Fault::invalid_value, {with([](auto& p) { p.offset = Bytes(1); }), ten}},
      {Fault::invalid_value, {with([](auto& p) { p.size = Bytes(9); }), ten}},
      {Fault::invalid_value, {with([](auto& p) { p.size = Bytes(101); }), ten}},
      {Fault::invalid_value, {with([](auto& p) { p.bytes = Bytes(0); }), ""}},
      {Fault::malformed, {text_of(wire::BulkAlive{Incarnation{1}}), ten}},
      {Fault::invalid_value, {text_of(wire::BulkCredit{1})}},
      {Fault::invalid_value, {text_of(wire::BulkRefused{1, ErrorCode::none, "nothing"})}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO("case ", i);
    Reader b;
    b.answer(cases[i].second);
    CHECK(last_error(*b.pull).code == ErrorCode::corrupt);
    CHECK(refused(*b.node, cases[i].first) == 1);
    CHECK(b.pull->next(Millis(0)).error().code == ErrorCode::corrupt);  // And stays over.
  }
}

TEST_CASE("a blob that changes its size, its hash or its order on the way is corrupt") {
  const auto second = [](auto change) {
    wire::BulkPart part{1, Bytes(20), Bytes(10), Bytes(10), {}};
    change(part);
    return text_of(part);
  };
  const std::string ten(10, 'x');
  for (const std::string& next : {second([](auto& p) { p.size = Bytes(21); }), second([](auto& p) { p.hash[0] = 1; }),
                                  second([](auto& p) { p.offset = Bytes(0); })}) {
    Reader b;
    b.answer({text_of(wire::BulkPart{1, Bytes(20), Bytes(0), Bytes(10), {}}), ten});
    b.answer({next, ten});
    CHECK(last_error(*b.pull).code == ErrorCode::corrupt);
  }
}

TEST_CASE("a newer server's unknown words are passed over, and a server's incarnation must not change") {
  Reader b;
  wire::FrameBytes unknown = wire::encode({.body = wire::BulkAlive{Incarnation{1}}}).value();
  unknown[2] |= 0xffull << 48;
  b.answer({text_of(unknown)});
  b.answer({text_of(wire::BulkPart{1, Bytes(10), Bytes(0), Bytes(10), {}}), std::string(10, 'x')});
  CHECK(read_blob(*b.pull).value().size() == 10);
  CHECK(refused(*b.node, Fault::unknown_message) == 1);
  b.answer({text_of(wire::BulkAlive{Incarnation{1}})});
  b.answer({text_of(wire::BulkAlive{Incarnation{2}})});
  CHECK(last_error(*b.pull).code == ErrorCode::unavailable);
}
