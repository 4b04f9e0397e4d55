// Socket options of the node, and the care for ipc paths.
#include "messages/mesh/sockets.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "messages/vocabulary/assert.hpp"

namespace sangam::mesh {
namespace {

// ZMQ_ZERO_COPY_RECV, hidden behind the draft API but accepted: frames of 40 to 8000 bytes would otherwise
// lie unaligned in the receive buffer and keep all 8 KiB of it alive.
constexpr int kZeroCopyRecv = 10;
// Frames, not bytes: the credit bounds the bytes, this only the part of them inside ZeroMQ.
constexpr int kHighWaterMark = 10000;
// One bit each in a socket's affinity.
constexpr std::size_t kIoThreadsMax = 64;
constexpr std::uint64_t kRouterThread = 1;

/// ZeroMQ resolves a host's name on the I/O thread that connects, and for a peer whose name is gone (a container
/// that ended) that takes seconds. So each peer has a thread of its own beside the router's, and a lost peer
/// holds up nobody's heartbeats.
std::size_t io_threads(const MeshOptions& options) {
  return std::min(options.peers.size() + 1, kIoThreadsMax);
}

std::uint64_t thread_of(const MeshOptions& options, const Peer& peer) {
  const auto same = [&](const Peer& other) { return other.node == peer.node; };
  const auto index = std::find_if(options.peers.begin(), options.peers.end(), same) - options.peers.begin();
  return std::uint64_t{1} << (1 + static_cast<std::size_t>(index) % (kIoThreadsMax - 1));
}

void set_common(zmq::socket_t& socket, const MeshOptions& options) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, kHighWaterMark);
  socket.set(zmq::sockopt::rcvhwm, kHighWaterMark);
  // Twice what we accept: a frame that is a little too large is counted and refused with a reason, and only
  // an absurd one costs its sender the connection.
  socket.set(zmq::sockopt::maxmsgsize, 2 * options.frame_max.count());
  socket.set(zmq::sockopt::handshake_ivl, int(options.heartbeat_timeout.count()));
}

/// True when a process accepts connections at this path.
bool somebody_listens(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

Result<void> clear_path(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return make_error(ErrorCode::invalid_input, "ipc path bytes=" + std::to_string(path.size()) + " limit=" +
                                                    std::to_string(sizeof(sockaddr_un::sun_path) - 1) + ": " +
                                                    path + "; use a shorter one");
  }
  if (::access(path.c_str(), F_OK) != 0) return {};
  if (somebody_listens(path)) {
    return make_error(ErrorCode::unavailable,
                      "another process listens at ipc://" + path + "; stop it or choose another path");
  }
  ::unlink(path.c_str());
  return {};
}

}  // namespace

zmq::context_t open_context(const MeshOptions& options) {
  zmq::context_t context(static_cast<int>(io_threads(options)));
  const int rc = zmq_ctx_set(context.handle(), kZeroCopyRecv, 0);
  SANGAM_ASSERT(rc == 0, "libzmq does not know ZMQ_ZERO_COPY_RECV", errno);
  return context;
}

zmq::socket_t open_router(zmq::context_t& context, const MeshOptions& options) {
  zmq::socket_t router(context, zmq::socket_type::router);
  set_common(router, options);
  router.set(zmq::sockopt::affinity, kRouterThread);
  // An answer to a lane that is gone must not vanish without a word.
  router.set(zmq::sockopt::router_mandatory, true);
  // A lane that reconnects after a half-dead connection gets its answers on the new one.
  router.set(zmq::sockopt::router_handover, true);
  if (options.keys) {
    router.set(zmq::sockopt::curve_server, true);
    router.set(zmq::sockopt::curve_secretkey, options.keys->secret_key);
    // Without a domain nobody is asked who may enter, and any key would do.
    router.set(zmq::sockopt::zap_domain, "sangam");
  }
  return router;
}

zmq::socket_t open_dealer(zmq::context_t& context, const MeshOptions& options, const Peer& peer,
                          const std::string& routing_id) {
  zmq::socket_t dealer(context, zmq::socket_type::dealer);
  set_common(dealer, options);
  dealer.set(zmq::sockopt::affinity, thread_of(options, peer));
  dealer.set(zmq::sockopt::routing_id, routing_id);
  // Nothing piles up for a peer that is not there.
  dealer.set(zmq::sockopt::immediate, true);
  dealer.set(zmq::sockopt::reconnect_ivl, 50);
  dealer.set(zmq::sockopt::reconnect_ivl_max, 500);
  dealer.set(zmq::sockopt::connect_timeout, 2000);
  if (options.keys) {
    dealer.set(zmq::sockopt::curve_serverkey, peer.public_key);
    dealer.set(zmq::sockopt::curve_publickey, options.keys->public_key);
    dealer.set(zmq::sockopt::curve_secretkey, options.keys->secret_key);
  }
  return dealer;
}

zmq::socket_t open_monitor(zmq::context_t& context, zmq::socket_t& watched, const std::string& endpoint) {
  const int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
  const int rc = zmq_socket_monitor(watched.handle(), endpoint.c_str(), events);
  SANGAM_ASSERT(rc == 0, "a socket cannot be watched", zmq_strerror(errno));
  zmq::socket_t monitor(context, zmq::socket_type::pair);
  monitor.set(zmq::sockopt::linger, 0);
  monitor.connect(endpoint);
  return monitor;
}

LinkEvent next_event(zmq::socket_t& monitor) {
  zmq::message_t event, address;
  if (!monitor.recv(event, zmq::recv_flags::dontwait)) return LinkEvent::none;
  [[maybe_unused]] auto rest = monitor.recv(address, zmq::recv_flags::dontwait);
  std::uint16_t which = 0;
  std::memcpy(&which, event.data(), sizeof which);
  return which == ZMQ_EVENT_DISCONNECTED ? LinkEvent::disconnected : LinkEvent::refused;
}

Result<std::string> bind(zmq::socket_t& router, const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  if (endpoint.starts_with(kIpc)) {
    if (auto cleared = clear_path(endpoint.substr(kIpc.size())); !cleared) return cleared.error();
  }
  try {
    router.bind(endpoint);
    return router.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& e) {
    const ErrorCode code = e.num() == EADDRINUSE ? ErrorCode::unavailable : ErrorCode::invalid_input;
    return make_error(code, "cannot listen at " + endpoint + ": " + e.what());
  }
}

}  // namespace sangam::mesh
