// What one node says to another; the schema holds the contract of each frame.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <variant>

#include "messages/vocabulary/message.hpp"

namespace sangam::wire {

struct Hello {
  NodeName node;
  Incarnation incarnation{};
  std::uint64_t lane = 0;
  bool is_answer = false;
};
BOOST_DESCRIBE_STRUCT(Hello, (), (node, incarnation, lane, is_answer))

struct Welcome {
  NodeName node;
  Incarnation incarnation{};
  Bytes granted_bytes{0};
};
BOOST_DESCRIBE_STRUCT(Welcome, (), (node, incarnation, granted_bytes))

struct Heartbeat {
  std::uint64_t frames_sent = 0;
};
BOOST_DESCRIBE_STRUCT(Heartbeat, (), (frames_sent))

struct ActorOpened {
  ActorName actor;
  Incarnation incarnation{};
};
BOOST_DESCRIBE_STRUCT(ActorOpened, (), (actor, incarnation))

struct ActorClosed {
  ActorName actor;
  std::string why;
};
BOOST_DESCRIBE_STRUCT(ActorClosed, (), (actor, why))

struct Credit {
  Bytes granted_bytes{0};
};
BOOST_DESCRIBE_STRUCT(Credit, (), (granted_bytes))

struct Bye {
  std::string why;
};
BOOST_DESCRIBE_STRUCT(Bye, (), (why))

using Body = std::variant<EnvelopePtr, Hello, Welcome, Heartbeat, ActorOpened, ActorClosed, Credit, Bye>;

constexpr std::uint32_t kMagic = 0x53414e47;  // "SANG"
constexpr std::uint16_t kVersion = 1;

struct Frame {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Body body;
};
BOOST_DESCRIBE_STRUCT(Frame, (), (magic, version, body))

}  // namespace sangam::wire
