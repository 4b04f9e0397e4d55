// A peer made of bare sockets, which says what no node of ours would say.
#pragma once

#include <string>
#include <zmq.hpp>

#include "messages/wire/codec.hpp"
#include "tests/unit/messages/mesh_fixture.hpp"

namespace sangam::testing {

class RawPeer {
 public:
  /// Speaks to `other` under the routing id, and listens where the registry says that `node` is.
  RawPeer(const Registry& registry, const std::string& node, const std::string& other, const std::string& id);

  void say(wire::Body body);
  void say_bytes(std::span<const std::byte> bytes);
  void say_parts(const std::vector<std::string>& parts);
  /// What the other node answers on our lane; fails the test when nothing comes.
  [[nodiscard]] wire::Body answer();
  /// Waits for the other's Hello and welcomes it.
  void welcome(Incarnation incarnation);
  /// Opens both lanes and one actor.
  void link(std::uint64_t incarnation, const std::string& actor);
  [[nodiscard]] Bytes granted() const { return granted_; }

 private:
  std::string node_;
  zmq::context_t context_;
  zmq::socket_t speaker_, listener_;
  Bytes granted_{0};
};

}  // namespace sangam::testing
