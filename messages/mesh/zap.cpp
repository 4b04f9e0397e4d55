// The handler of ZAP requests.
#include "messages/mesh/zap.hpp"

#include <array>

namespace sangam::mesh {
namespace {

constexpr std::size_t kRawKeySize = 32;
// Frames of a request: version, request id, domain, address, routing id, mechanism, then the client's key.
constexpr std::size_t kVersion = 0, kRequest = 1, kAddress = 3, kMechanism = 5, kKey = 6, kFrames = 7;

std::string z85(const std::string& raw) {
  if (raw.size() != kRawKeySize) return {};
  std::array<char, kKeySize + 1> text{};
  zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(raw.data()), kRawKeySize);
  return text.data();
}

/// Empty: no request is there.
std::vector<std::string> receive(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t frame;
  do {
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) break;
    frames.push_back(frame.to_string());
  } while (frame.more());
  return frames;
}

}  // namespace

bool is_pair(const MeshKeys& keys) {
  std::array<char, kKeySize + 1> derived{};
  return keys.secret_key.size() == kKeySize &&
         zmq_curve_public(derived.data(), keys.secret_key.c_str()) == 0 && keys.public_key == derived.data();
}

DoorKeeper::DoorKeeper(zmq::context_t& context, const std::vector<Peer>& peers)
    : socket_(context, zmq::socket_type::rep) {
  for (const Peer& peer : peers) nodes_by_key_[peer.public_key] = peer.node;
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

std::vector<std::string> DoorKeeper::answer() {
  std::vector<std::string> turned_away;
  for (auto request = receive(socket_); !request.empty(); request = receive(socket_)) {
    auto node = nodes_by_key_.end();
    if (request.size() == kFrames && request[kMechanism] == "CURVE")
      node = nodes_by_key_.find(z85(request[kKey]));
    const bool known = node != nodes_by_key_.end();
    if (!known && request.size() > kAddress) turned_away.push_back(request[kAddress]);
    const std::array<std::string, 6> reply = {request[kVersion],
                                              request.size() > kRequest ? request[kRequest] : std::string(),
                                              known ? "200" : "400",
                                              known ? "OK" : "this key is not in the registry",
                                              known ? node->second.text() : std::string(),
                                              std::string()};
    for (std::size_t i = 0; i < reply.size(); ++i) {
      const auto flags = i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
      socket_.send(zmq::buffer(reply[i]), flags);
    }
  }
  return turned_away;
}

}  // namespace sangam::mesh
