// Bare sockets in the place of a node.
#include "tests/unit/messages/raw_peer.hpp"

#include <doctest/doctest.h>

namespace sangam::testing {

RawPeer::RawPeer(const Registry& registry, const std::string& node, const std::string& other,
                 const std::string& id)
    : node_(node),
      speaker_(context_, zmq::socket_type::dealer),
      listener_(context_, zmq::socket_type::router) {
  for (auto* socket : {&speaker_, &listener_}) {
    socket->set(zmq::sockopt::linger, 0);
    socket->set(zmq::sockopt::rcvtimeo, int(std::chrono::milliseconds(kDeadline).count()));
    socket->set(zmq::sockopt::sndtimeo, int(std::chrono::milliseconds(kDeadline).count()));
  }
  listener_.bind(registry.endpoint(node));
  speaker_.set(zmq::sockopt::routing_id, id);
  speaker_.connect(registry.endpoint(other));
}

void RawPeer::say(wire::Body body) {
  const auto frame = wire::encode({.body = std::move(body)}).value();
  say_bytes(wire::bytes_of(frame));
}

void RawPeer::say_bytes(std::span<const std::byte> bytes) {
  REQUIRE(speaker_.send(zmq::buffer(bytes.data(), bytes.size())).has_value());
}

void RawPeer::say_parts(const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto flags = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    REQUIRE(speaker_.send(zmq::buffer(parts[i]), flags).has_value());
  }
}

wire::Body RawPeer::answer() {
  zmq::message_t frame;
  REQUIRE(speaker_.recv(frame).has_value());
  return wire::decode({frame.data<std::byte>(), frame.size()}).value().body;
}

void RawPeer::welcome(Incarnation incarnation) {
  zmq::message_t id, hello;
  REQUIRE(listener_.recv(id).has_value());
  REQUIRE(listener_.recv(hello).has_value());
  REQUIRE(std::holds_alternative<wire::Hello>(
      wire::decode({hello.data<std::byte>(), hello.size()}).value().body));
  const auto frame =
      wire::encode({.body = wire::Welcome{NodeName(node_), incarnation, Bytes(1'000'000)}}).value();
  const auto bytes = wire::bytes_of(frame);
  REQUIRE(listener_.send(id, zmq::send_flags::sndmore).has_value());
  REQUIRE(listener_.send(zmq::buffer(bytes.data(), bytes.size())).has_value());
}

void RawPeer::link(std::uint64_t incarnation, const std::string& actor) {
  say(wire::Hello{NodeName(node_), Incarnation{incarnation}, 1, false});
  granted_ = std::get<wire::Welcome>(answer()).granted_bytes;
  welcome(Incarnation{incarnation});
  say(wire::ActorOpened{ActorName(actor), Incarnation{incarnation}});
}

}  // namespace sangam::testing
