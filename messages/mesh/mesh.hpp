// The mesh as a process sees it: its own actors, and the nodes that it shares letters with over ZeroMQ.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/mesh/post_office.hpp"
#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/wire/codec.hpp"

namespace sangam {

/// A node that we may talk with.
struct Peer {
  NodeName node;
  std::string endpoint;    ///< "tcp://worker-1:7700" or "ipc:///run/sangam/worker-1".
  std::string public_key;  ///< Z85, 40 characters; empty where the mesh has no keys.
};

/// CURVE, Z85 of 40 characters each; `zmq_curve_keypair` makes a pair.
struct MeshKeys {
  std::string public_key;
  std::string secret_key;
};

struct MeshOptions {
  NodeName node{"local"};
  Incarnation incarnation{1};
  std::vector<std::string> listen;  ///< "tcp://0.0.0.0:7700", "tcp://127.0.0.1:*", "ipc:///run/sangam/x".
  /// The static registry. It may be one list for all nodes: the entry with our own name is skipped.
  std::vector<Peer> peers;
  std::optional<MeshKeys> keys;  ///< With keys, only peers whose public key is listed may enter.

  Millis heartbeat_interval{200};
  Millis heartbeat_timeout{1000};  ///< A peer that is silent for this long is lost.
  Bytes frame_max = wire::kFrameMax;
  Bytes window{32 * 1024 * 1024};    ///< Letters that a peer may have un-consumed here; at least frame_max.
  Bytes held_max{64 * 1024 * 1024};  ///< Letters that wait here for a peer's credit; beyond it, it is lost.
};

/// Counts since the start, but for those that say "now".
struct MeshCounters {
  std::uint64_t letters_local = 0;
  std::uint64_t letters_away = 0;     ///< Dropped: the receiver was not there.
  std::uint64_t letters_lost = 0;     ///< Dropped on our side: the peer was lost while they waited.
  std::uint64_t letters_refused = 0;  ///< Our own that no peer would have taken; logged with the reason.
  std::uint64_t frames_in = 0, bytes_in = 0;
  std::uint64_t frames_out = 0, bytes_out = 0;
  std::array<std::uint64_t, wire::kFaults> refused{};  ///< Frames from others, by wire::Fault.
  std::uint64_t strangers = 0;  ///< Frames of nodes that are not listed, or of lanes that are over.
  std::uint64_t peers_found = 0;
  std::uint64_t peers_lost = 0;
  std::uint64_t peers_now = 0;
  std::uint64_t held_frames_now = 0;
  std::uint64_t held_bytes_now = 0;
  std::uint64_t unconsumed_bytes_now = 0;  ///< Letters of peers that actors here have not yet let go.
};

/// Called from any thread of the mesh.
using LogSink = std::function<void(const LogLine&)>;

class Mesh : public PostOffice {
 public:
  [[nodiscard]] virtual MeshCounters counters() const = 0;
  /// What `listen` became: ports chosen by the system are filled in.
  [[nodiscard]] virtual std::vector<std::string> endpoints() const = 0;
};

/// Without `listen` and `peers` the mesh is this process alone: no socket, no thread. The destructor says
/// goodbye to the peers and returns when no mailbox will be called any more.
[[nodiscard]] Result<std::unique_ptr<Mesh>> open_mesh(MeshOptions options, LogSink log);

}  // namespace sangam
