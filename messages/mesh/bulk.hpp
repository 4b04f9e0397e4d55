// The bulk channel: blobs from host to host over sockets, threads and buffers of its own, so that no token ever waits
// behind one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "messages/mesh/mesh.hpp"
#include "messages/vocabulary/blob.hpp"

namespace sangam {

struct BulkOptions {
  /// Name, incarnation, keys and heartbeats are the mesh's; `listen` and `peers` are the channel's own.
  MeshOptions node;
  std::map<ActorName, NodeName> owners;  ///< At which peer an actor's blobs are to be had.
  Bytes part_max{1024 * 1024};           ///< Of one message.
  std::uint64_t parts_in_flight = 16;    ///< Of one pull: what its reader may have un-consumed.
  Millis stall_max{30'000};              ///< A reader that says nothing for this long while it has something to read is given up.
};

/// Counts since the start, but for those that say "now".
struct BulkCounters {
  std::uint64_t parts_out = 0, bytes_out = 0;
  std::uint64_t parts_in = 0, bytes_in = 0;
  std::array<std::uint64_t, wire::kFaults> refused{};  ///< Frames from others, by wire::Fault.
  std::uint64_t strangers = 0;                         ///< Frames outside of a session, or of nodes that are not listed.
  std::uint64_t sessions_now = 0;
};

class Bulk : public BlobChannel {
 public:
  [[nodiscard]] virtual BulkCounters counters() const = 0;
  /// What `listen` became.
  [[nodiscard]] virtual std::vector<std::string> endpoints() const = 0;
};

/// Without `listen` nothing can be read from here, and no thread runs. Its pulls end before the channel.
[[nodiscard]] Result<std::unique_ptr<Bulk>> open_bulk(BulkOptions options, LogSink log);

}  // namespace sangam
