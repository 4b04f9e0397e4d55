// Who may enter: ZeroMQ's authentication protocol (ZAP, RFC 27), answered from the registry's public keys.
#pragma once

#include <map>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "messages/mesh/mesh.hpp"

namespace sangam::mesh {

constexpr std::size_t kKeySize = 40;  ///< Z85 of 32 bytes.

[[nodiscard]] bool is_pair(const MeshKeys& keys);

/// Tells ZeroMQ for each key that knocks whether it is listed, and whose it is (the message's "User-Id").
/// Must exist before the ROUTER listens: without one, any key is let in.
class DoorKeeper {
 public:
  DoorKeeper(zmq::context_t& context, const std::vector<Peer>& peers);

  [[nodiscard]] zmq::socket_t& socket() { return socket_; }
  /// Answers all questions that are there now. The addresses of those whom it has turned away: more is not known of a
  /// key that is in no registry.
  [[nodiscard]] std::vector<std::string> answer();

 private:
  zmq::socket_t socket_;
  std::map<std::string, NodeName> nodes_by_key_;
};

}  // namespace sangam::mesh
