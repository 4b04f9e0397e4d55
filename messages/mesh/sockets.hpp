// The ZeroMQ sockets of a node, with the options that the mesh needs and the reasons for them.
#pragma once

#include <string>
#include <string_view>
#include <zmq.hpp>

#include "messages/mesh/mesh.hpp"

namespace sangam::mesh {

/// A context whose messages are aligned to 8 bytes, so that frames are read in place.
[[nodiscard]] zmq::context_t open_context(const MeshOptions& options);

/// Where peers speak to us. Binds nothing yet.
[[nodiscard]] zmq::socket_t open_router(zmq::context_t& context, const MeshOptions& options);

/// For one lane to a peer. Connects nothing yet.
[[nodiscard]] zmq::socket_t open_dealer(zmq::context_t& context, const MeshOptions& options, const Peer& peer,
                                        const std::string& routing_id);

/// Hears of a socket's connection being lost or refused.
[[nodiscard]] zmq::socket_t open_monitor(zmq::context_t& context, zmq::socket_t& watched,
                                         const std::string& endpoint);
enum class LinkEvent : std::uint8_t { none, disconnected, refused };
/// The next event of a monitor; `none` when there is none now.
[[nodiscard]] LinkEvent next_event(zmq::socket_t& monitor);

/// Binds to an endpoint and returns what it became. A path of ipc:// that a dead process left behind is taken
/// over; one where somebody listens is refused.
[[nodiscard]] Result<std::string> bind(zmq::socket_t& router, const std::string& endpoint);

}  // namespace sangam::mesh
