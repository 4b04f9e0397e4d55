// The node's thread: poll, hear, tick, flush.
#include "messages/mesh/node.hpp"

#include <pthread.h>
#include <signal.h>

#include <bit>
#include <chrono>

#include "messages/mesh/sockets.hpp"

namespace sangam::mesh {
namespace {

/// How many frames of one socket are heard before the others get a turn.
constexpr int kFramesPerTurn = 256;

Instant clock_now() {
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

Node::Node(NodeParts parts, Directory& directory)
    : parts_(std::move(parts)), directory_(directory), context_(open_context(parts_.options)) {
  for (const Peer& peer : parts_.options.peers) {
    if (peer.node != parts_.options.node) links_.push_back(std::make_unique<Link>(parts_, peer));
  }
}

Node::~Node() {
  stop_ = true;
  parts_.wake->ring();
  if (thread_.joinable()) thread_.join();
}

Result<void> Node::start() {
  if (parts_.options.keys) door_keeper_.emplace(context_, parts_.options.peers);
  router_ = open_router(context_, parts_.options);
  for (const std::string& endpoint : parts_.options.listen) {
    auto bound = bind(router_, endpoint);
    if (!bound) return bound.error();
    endpoints_.push_back(*bound);
  }
  for (PeerIndex peer = 0; peer < links_.size(); ++peer) {
    try {
      begin_lane(peer, false);
    } catch (const zmq::error_t& e) {
      const Peer& to = links_[peer]->lane.peer();
      return make_error(ErrorCode::invalid_input,
                        "cannot connect to " + to.node.text() + " at " + to.endpoint + ": " + e.what());
    }
  }
  start_thread();
  return {};
}

void Node::start_thread() {
  // Signals are for the process's own threads; here they would interrupt a poll.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Node::run() {
  next_tick_ = clock_now();
  while (!stop_) turn();
  for (auto& link : links_) {
    link->lane.flush(clock_now());
    link->lane.finish("the node stops");
  }
  router_.set(zmq::sockopt::linger, 0);
  router_ = zmq::socket_t();
}

void Node::turn() {
  poll(clock_now());
  const Instant now = clock_now();
  parts_.wake->clear();
  serve(now);
  if (now >= next_tick_) tick(now);
  for (PeerIndex peer = 0; peer < links_.size(); ++peer) {
    Link& link = *links_[peer];
    link.lane.flush(now);
    if (link.lane.overflowed()) lose(peer, "more letters wait for its credit than may be held");
    if (link.has_guest() && link.tab->worth_telling()) grant(peer);
  }
}

void Node::poll(Instant now) {
  std::vector<zmq::pollitem_t> items;
  items.reserve(3 + 2 * links_.size());
  items.push_back({nullptr, parts_.wake->fd(), ZMQ_POLLIN, 0});
  items.push_back({router_.handle(), 0, ZMQ_POLLIN, 0});
  for (auto& link : links_) {
    const short out = link->lane.wants_to_send() ? ZMQ_POLLOUT : 0;
    items.push_back({link->lane.socket().handle(), 0, short(ZMQ_POLLIN | out), 0});
    items.push_back({link->lane.monitor().handle(), 0, ZMQ_POLLIN, 0});
  }
  if (door_keeper_) items.push_back({door_keeper_->socket().handle(), 0, ZMQ_POLLIN, 0});
  const auto wait = std::chrono::ceil<Millis>(std::max(Micros(0), next_tick_ - now));
  zmq::poll(items, wait);
}

void Node::serve(Instant now) {
  if (door_keeper_) parts_.say_refused(door_keeper_->answer());
  // Their lanes before ours: what a peer said before its connection broke is still heard.
  hear_router(now);
  for (PeerIndex peer = 0; peer < links_.size(); ++peer) {
    hear_listener(peer, now);
    hear_monitor(peer);
  }
}

void Node::tick(Instant now) {
  // Time in which we did not run ourselves is not counted against the peers.
  const Micros late = now - next_tick_;
  next_tick_ = now + parts_.options.heartbeat_interval;
  for (PeerIndex peer = 0; peer < links_.size(); ++peer) {
    Link& link = *links_[peer];
    if (std::exchange(link.begin_anew, false) && !link.lane.is_open()) begin_lane(peer, true);
    link.lane.heartbeat();
    if (!link.has_guest() && !link.lane.is_open()) continue;
    if (link.has_guest()) grant(peer);
    link.heard = std::min(now, link.heard + late);
    if (now - link.heard > parts_.options.heartbeat_timeout) {
      lose(peer, "silent for " + std::to_string((now - link.heard) / Millis(1)) + " ms");
    }
  }
}

void Node::hear_router(Instant now) {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    zmq::message_t id, body;
    if (!router_.recv(id, zmq::recv_flags::dontwait)) return;
    if (!id.more() || !router_.recv(body, zmq::recv_flags::dontwait)) continue;
    ++parts_.tally->frames_in;
    parts_.tally->bytes_in += body.size();
    bool one_part = true;
    for (zmq::message_t rest; body.more() && router_.recv(rest, zmq::recv_flags::dontwait);) {
      one_part = false;
      if (!rest.more()) break;
    }
    if (one_part) {
      hear_frame(id.to_string(), body, now);
    } else {
      count_refusal({wire::Fault::malformed, "a frame has one part"}, id.to_string());
    }
  }
}

/// With keys, a known node cannot speak under the routing id of another one.
bool Node::is_from(const NodeName& node, zmq::message_t& body) const {
  return !door_keeper_ || node.text() == body.gets("User-Id");
}

void Node::hear_frame(const std::string& id, zmq::message_t& body, Instant now) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end()) return hear_stranger(id, body, now);
  if (is_from(links_[guest->second]->lane.peer().node, body)) return hear_guest(guest->second, body, now);
  refuse_stranger(id, id, "this routing id belongs to another node");
}

void Node::hear_stranger(const std::string& id, zmq::message_t& body, Instant now) {
  auto frame = decode(body);
  if (!frame) return count_refusal(frame.error(), id);
  const auto* hello = std::get_if<wire::Hello>(&frame->body);
  // Without a Hello it is a lane that we gave up, or that spoke with our predecessor: it must start anew.
  if (hello == nullptr) return refuse_stranger(id, id, "this lane was not greeted");
  if (!is_from(hello->node, body))
    return refuse_stranger(id, hello->node.text(), "the key is not this node's");
  greet(id, *hello, now);
}

void Node::greet(const std::string& id, const wire::Hello& hello, Instant now) {
  const std::string& name = hello.node.text();
  const auto peer = peer_named(hello.node);
  if (!peer) {
    return refuse_stranger(id, name,
                           "node " + name + " is not in the registry of " + parts_.options.node.text());
  }
  Link& link = *links_[*peer];
  if (std::string why = why_over(link, hello); !why.empty()) return refuse_stranger(id, name, why);
  const std::string why = hello.incarnation == link.incarnation ? "its lane began anew" : "it started anew";
  const auto& listener = link.lane.listener();
  const bool other_listener = listener && *listener != hello.incarnation;
  if (!other_listener && hello.is_answer) {
    part(*peer, why);
  } else if (other_listener || link.has_guest()) {
    lose(*peer, why, true);
  }
  bring_in(*peer, id, hello, now);
}

std::string Node::why_over(const Link& link, const wire::Hello& hello) const {
  if (hello.incarnation == link.incarnation && hello.lane <= link.guest_lane) return "this lane is over";
  if (link.has_guest() && hello.incarnation < link.incarnation) {
    return "a newer incarnation of " + hello.node.text() + " is present";
  }
  return {};
}

void Node::bring_in(PeerIndex peer, const std::string& id, const wire::Hello& hello, Instant now) {
  Link& link = *links_[peer];
  link.guest = id;
  link.incarnation = hello.incarnation;
  link.guest_lane = hello.lane;
  link.frames_received = 0;
  link.received = link.granted = 0;
  link.heard = now;
  guests_[id] = peer;
  welcome(peer);
  note_presence(peer);
}

void Node::hear_guest(PeerIndex peer, zmq::message_t& body, Instant now) {
  Link& link = *links_[peer];
  link.heard = now;
  auto frame = decode(body);
  if (frame && std::holds_alternative<wire::Hello>(frame->body)) return welcome(peer);
  ++link.frames_received;
  if (!frame) return count_refusal(frame.error(), link.lane.peer().node.text());
  take(peer, frame->body, std::int64_t(body.size()));
}

void Node::hear_listener(PeerIndex peer, Instant now) {
  Link& link = *links_[peer];
  for (int i = 0; i < kFramesPerTurn; ++i) {
    zmq::message_t body;
    // The lane may start anew inside this loop; then its new socket has nothing yet.
    if (!link.lane.socket().recv(body, zmq::recv_flags::dontwait)) return;
    ++parts_.tally->frames_in;
    parts_.tally->bytes_in += body.size();
    link.heard = now;
    auto frame = decode(body);
    if (frame) {
      take_answer(peer, frame->body);
    } else {
      count_refusal(frame.error(), link.lane.peer().node.text());
    }
  }
}

void Node::hear_monitor(PeerIndex peer) {
  Link& link = *links_[peer];
  for (;;) {
    const LinkEvent event = next_event(link.lane.monitor());
    if (event == LinkEvent::none) return;
    if (event == LinkEvent::refused) {
      note_handshake_refused(link);
    } else if (link.lane.is_open()) {
      lose(peer, "disconnected");
    } else {
      link.lane.disconnected();
    }
  }
}

/// Tried again and again; said at the 1st, 2nd, 4th, ... time. Without keys nothing is refused: the peer has ended in
/// the middle of it.
void Node::note_handshake_refused(Link& link) {
  const std::uint64_t times = ++link.handshakes_refused;
  if (!std::has_single_bit(times)) return;
  const std::string why = parts_.options.keys
                              ? "its key is not the one that the registry has of it, or ours is not in its registry"
                              : "it ended meanwhile, or wants keys";
  parts_.say(parts_.options.keys ? LogLevel::error : LogLevel::debug, "mesh.handshake_refused",
             {{"peer", link.lane.peer().node.text()}, {"why", why}, {"times", std::to_string(times)}});
}

wire::Decoded<wire::Frame> Node::decode(const zmq::message_t& body) const {
  return wire::decode({body.data<std::byte>(), body.size()}, parts_.options.frame_max);
}

bool Node::answer(const std::string& id, wire::Body body) {
  const auto frame = wire::encode({.body = std::move(body)}, parts_.options.frame_max);
  SANGAM_ASSERT(frame.has_value(), frame.error().why);
  const auto bytes = wire::bytes_of(*frame);
  try {
    if (!router_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
    if (!router_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait)) return false;
  } catch (const zmq::error_t&) {
    return false;  // EHOSTUNREACH: its connection is gone, and its silence will tell.
  }
  ++parts_.tally->frames_out;
  parts_.tally->bytes_out += bytes.size();
  return true;
}

void Node::count_refusal(const wire::Refusal& refusal, const std::string& from) {
  const std::uint64_t times = ++parts_.tally->refused[std::size_t(refusal.fault)];
  parts_.say_rarely(times, "mesh.frame_refused",
                    {{"fault", std::string(wire::name_of(refusal.fault))},
                     {"from", from},
                     {"why", refusal.why},
                     {"times", std::to_string(times)}});
}

void Node::refuse_stranger(const std::string& id, const std::string& who, const std::string& why) {
  const std::uint64_t times = ++parts_.tally->strangers;
  parts_.say_rarely(times, "mesh.stranger", {{"who", who}, {"why", why}, {"times", std::to_string(times)}});
  answer(id, wire::Bye{why});
}

std::optional<PeerIndex> Node::peer_named(const NodeName& node) const {
  for (PeerIndex peer = 0; peer < links_.size(); ++peer) {
    if (links_[peer]->lane.peer().node == node) return peer;
  }
  return std::nullopt;
}

void Node::add_counters(MeshCounters& counters) const {
  const Tally& tally = *parts_.tally;
  counters.letters_lost = tally.letters_lost;
  counters.letters_refused = tally.letters_refused;
  counters.frames_in = tally.frames_in;
  counters.bytes_in = tally.bytes_in;
  counters.frames_out = tally.frames_out;
  counters.bytes_out = tally.bytes_out;
  for (std::size_t fault = 0; fault < wire::kFaults; ++fault) counters.refused[fault] = tally.refused[fault];
  counters.strangers = tally.strangers;
  counters.peers_found = tally.peers_found;
  counters.peers_lost = tally.peers_lost;
  counters.peers_now = tally.peers_now;
  counters.held_frames_now = tally.held_frames;
  counters.held_bytes_now = tally.held_bytes;
  counters.unconsumed_bytes_now = tally.unconsumed_bytes;
}

}  // namespace sangam::mesh
