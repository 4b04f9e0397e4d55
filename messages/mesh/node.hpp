// One thread that owns the sockets of this process: it greets peers, carries letters both ways, and notices
// who is gone.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#include <zmq.hpp>

#include "messages/mesh/directory.hpp"
#include "messages/mesh/lane.hpp"
#include "messages/mesh/node_parts.hpp"
#include "messages/mesh/tab.hpp"
#include "messages/mesh/zap.hpp"

namespace sangam::mesh {

/// A link to a peer has two lanes: ours, on which we speak, and theirs, on which the guest speaks to our
/// ROUTER. The peer is present while both are open. When either breaks, both start anew.
class Node {
 public:
  Node(NodeParts parts, Directory& directory);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Binds, connects and starts the thread.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }
  void add_counters(MeshCounters& counters) const;

 private:
  struct Link {
    Link(NodeParts& parts, const Peer& peer)
        : lane(parts, peer), tab(std::make_shared<Tab>(parts.options.window, parts.wake, parts.tally)) {}
    [[nodiscard]] bool has_guest() const { return !guest.empty(); }
    [[nodiscard]] bool is_present() const { return has_guest() && lane.is_open(); }

    Lane lane;
    std::shared_ptr<Tab> tab;
    std::string guest;  // Routing id of their lane; empty: not greeted.
    Incarnation incarnation{};
    std::uint64_t guest_lane = 0;  // The last one greeted of this incarnation, also when it is over.
    std::uint64_t frames_received = 0;
    std::int64_t received = 0, granted = 0;  // Bytes of letters on their lane.
    std::vector<wire::ActorOpened> early;    // Told before our own lane was open.
    Instant heard{};
    std::string last_refusal;  // Of our Hello, so that it is logged once.
    bool begin_anew = false;   // Our lane, with the next tick.
    std::uint64_t handshakes_refused = 0;
  };

  void start_thread();
  void run();
  void turn();
  void poll(Instant now);
  void tick(Instant now);
  void serve(Instant now);

  void hear_router(Instant now);
  void hear_frame(const std::string& id, zmq::message_t& body, Instant now);
  void hear_stranger(const std::string& id, zmq::message_t& body, Instant now);
  void hear_guest(PeerIndex peer, zmq::message_t& body, Instant now);
  void hear_listener(PeerIndex peer, Instant now);
  void hear_monitor(PeerIndex peer);
  void note_handshake_refused(Link& link);
  void greet(const std::string& id, const wire::Hello& hello, Instant now);
  void bring_in(PeerIndex peer, const std::string& id, const wire::Hello& hello, Instant now);
  void take(PeerIndex peer, const wire::Body& body, std::int64_t bytes);
  void take_letter(PeerIndex peer, const EnvelopePtr& letter, std::int64_t bytes);
  void take_opened(PeerIndex peer, const wire::ActorOpened& opened);
  void take_closed(PeerIndex peer, const wire::ActorClosed& closed);
  void take_heartbeat(PeerIndex peer, const wire::Heartbeat& heartbeat);
  void take_answer(PeerIndex peer, const wire::Body& body);
  void take_welcome(PeerIndex peer, const wire::Welcome& welcome);

  void note_presence(PeerIndex peer);
  /// All that was on the way is lost, and both lanes begin anew.
  void lose(PeerIndex peer, const std::string& why, bool is_answer = false);
  /// The peer's actors are lost; our lane stays.
  void part(PeerIndex peer, const std::string& why);
  void begin_lane(PeerIndex peer, bool is_answer);
  [[nodiscard]] std::string why_over(const Link& link, const wire::Hello& hello) const;
  void grant(PeerIndex peer);
  void welcome(PeerIndex peer);
  [[nodiscard]] wire::Decoded<wire::Frame> decode(const zmq::message_t& body) const;
  bool answer(const std::string& id, wire::Body body);
  void count_refusal(const wire::Refusal& refusal, const std::string& from);
  void refuse_stranger(const std::string& id, const std::string& who, const std::string& why);
  [[nodiscard]] bool is_from(const NodeName& node, zmq::message_t& body) const;
  [[nodiscard]] std::optional<PeerIndex> peer_named(const NodeName& node) const;

  NodeParts parts_;
  Directory& directory_;
  zmq::context_t context_;
  std::optional<DoorKeeper> door_keeper_;  // With keys.
  zmq::socket_t router_;
  std::vector<std::unique_ptr<Link>> links_;
  std::unordered_map<std::string, PeerIndex> guests_;  // By routing id.
  std::vector<std::string> endpoints_;
  std::uint64_t lanes_started_ = 0;
  Instant next_tick_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sangam::mesh
