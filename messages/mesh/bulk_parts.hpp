// What the server and the pulls of a bulk channel share.
#pragma once

#include <memory>
#include <string>
#include <zmq.hpp>

#include "messages/mesh/bulk.hpp"
#include "messages/mesh/node_parts.hpp"
#include "messages/wire/bulk_frame.hpp"

namespace sangam::mesh {

struct BulkTally {
  Count parts_out{0}, bytes_out{0}, parts_in{0}, bytes_in{0}, sessions{0};
};

/// Thread-safe, but for what the options' owner may do before the first use.
struct BulkShared {
  BulkShared(BulkOptions options_in, LogSink log) : options(std::move(options_in)), node{options.node, std::move(log)} {}

  /// Counts a frame that makes no sense, and says so at the 1st, 2nd, 4th, ... time.
  void refused(const wire::Refusal& refusal, const std::string& from);

  const BulkOptions options;
  NodeParts node;  ///< For its log, bell and counts of refusals.
  BulkTally tally;
  std::atomic<std::uint64_t> pulls{0};  ///< Opened so far: each has a routing id of its own.
};

/// Messages queued inside ZeroMQ belong to a peer only as long as the peer answers its pings, whatever the peer's
/// own threads do.
void set_bulk(zmq::socket_t& socket, const BulkOptions& options);

[[nodiscard]] wire::Decoded<wire::BulkFrame> decode_bulk(const zmq::message_t& message);

/// Receives all parts of one message, at most two of them into `first` and `second`. How many there were; 0: none is
/// there.
[[nodiscard]] int receive_parts(zmq::socket_t& socket, zmq::message_t& first, zmq::message_t& second);

}  // namespace sangam::mesh
