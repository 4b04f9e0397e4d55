// The way from this node to one peer: letters wait here for credit, then leave by a DEALER of their own.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "messages/mesh/directory.hpp"
#include "messages/mesh/node_parts.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam::mesh {

/// The Outlet side is called by any thread, everything else by the node's thread. A lane that lost anything
/// is not mended: it starts anew under another routing id, and both ends treat what was on the way as lost.
class Lane final : public Outlet {
 public:
  Lane(NodeParts& parts, Peer peer) : parts_(parts), peer_(std::move(peer)) {}
  ~Lane() override { close_sockets(); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void letter(const EnvelopePtr& letter) override;
  void opened(const ActorName& actor, Incarnation incarnation) override;
  void closed(const ActorName& actor, const std::string& why) override;

  /// Drops all that waits and connects under a new routing id. `is_answer`: as in Hello.
  void start(zmq::context_t& context, std::uint64_t number, bool is_answer);
  /// Drops all that waits.
  void drop_held();
  /// Says goodbye, if anybody listens, and closes.
  void finish(const std::string& why);

  /// Sends what has credit and whatever else is due.
  void flush(Instant now);
  void heartbeat();
  void welcomed(const wire::Welcome& welcome);
  void credited(Bytes granted) { granted_ = std::max(granted_, granted.count()); }
  /// The connection is away; before the welcome, that only means to say Hello again.
  void disconnected() { hello_at_.reset(); }

  [[nodiscard]] const Peer& peer() const { return peer_; }
  [[nodiscard]] zmq::socket_t& socket() { return dealer_; }
  [[nodiscard]] zmq::socket_t& monitor() { return monitor_; }
  [[nodiscard]] const std::optional<Incarnation>& listener() const { return listener_; }
  [[nodiscard]] bool is_open() const { return listener_.has_value(); }
  /// Letters came in beyond what may be held: the peer must be given up.
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  /// Worth waking when the socket can take more.
  [[nodiscard]] bool wants_to_send() const { return blocked_; }

 private:
  struct Held {
    wire::FrameBytes frame;
    bool is_letter = false;
  };
  void push(wire::Body body, bool is_letter);
  [[nodiscard]] bool send(const wire::FrameBytes& frame);
  [[nodiscard]] bool say(wire::Body body);
  void say_hello(Instant now);
  void close_sockets();

  NodeParts& parts_;
  const Peer peer_;

  std::mutex mutex_;
  std::deque<Held> incoming_;  // Guarded by mutex_.
  std::atomic<std::int64_t> held_bytes_{0};
  std::atomic<bool> overflowed_{false};

  std::deque<Held> ready_;
  zmq::socket_t dealer_, monitor_;
  std::uint64_t number_ = 0;
  bool is_answer_ = false;
  std::optional<Incarnation> listener_;  // Whoever welcomed us.
  std::optional<Instant> hello_at_;
  std::uint64_t frames_sent_ = 0;
  std::int64_t sent_ = 0, granted_ = 0;  // Bytes of letters on this lane.
  bool blocked_ = false;
};

}  // namespace sangam::mesh
