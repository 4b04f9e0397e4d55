// The node's thread: poll, hear, tick, flush.
#include "messages/mesh/node.hpp"

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
    : parts_(std::move(parts)), directory_(directory), context_(open_context()) {
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
  router_ = open_router(context_, parts_.options);
  for (const std::string& endpoint : parts_.options.listen) {
    auto bound = bind(router_, endpoint);
    if (!bound) return bound.error();
    endpoints_.push_back(*bound);
  }
  for (auto& link : links_) {
    try {
      link->lane.start(context_, ++lanes_started_);
    } catch (const zmq::error_t& e) {
      return make_error(ErrorCode::invalid_input, "cannot connect to " + link->lane.peer().node.text() + " at " +
                                                      link->lane.peer().endpoint + ": " + e.what());
    }
  }
  thread_ = std::thread([this] { run(); });
  return {};
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
  items.reserve(2 + 2 * links_.size());
  items.push_back({nullptr, parts_.wake->fd(), ZMQ_POLLIN, 0});
  items.push_back({router_.handle(), 0, ZMQ_POLLIN, 0});
  for (auto& link : links_) {
    const short out = link->lane.wants_to_send() ? ZMQ_POLLOUT : 0;
    items.push_back({link->lane.socket().handle(), 0, short(ZMQ_POLLIN | out), 0});
    items.push_back({link->lane.monitor().handle(), 0, ZMQ_POLLIN, 0});
  }
  const auto wait = std::chrono::ceil<Millis>(std::max(Micros(0), next_tick_ - now));
  zmq::poll(items, wait);
}

void Node::serve(Instant now) {
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
    const std::string sender = id.to_string();
    bool one_part = true;
    for (zmq::message_t rest; body.more() && router_.recv(rest, zmq::recv_flags::dontwait);) {
      one_part = false;
      if (!rest.more()) break;
    }
    if (!one_part) {
      count_refusal({wire::Fault::malformed, "a frame has one part"}, sender);
    } else if (auto guest = guests_.find(sender); guest != guests_.end()) {
      hear_guest(guest->second, body, now);
    } else {
      hear_stranger(sender, body, now);
    }
  }
}

void Node::hear_stranger(const std::string& id, zmq::message_t& body, Instant now) {
  auto frame = wire::decode(std::as_bytes(std::span(body.data<std::byte>(), body.size())), parts_.options.frame_max);
  if (!frame) {
    count_refusal(frame.error(), id);
  } else if (const auto* hello = std::get_if<wire::Hello>(&frame->body)) {
    greet(id, *hello, now);
  } else {
    // A lane that we gave up, or that spoke with our predecessor: it must start anew.
    count_stranger(id, "no Hello");
    answer(id, wire::Bye{"this lane was not greeted"});
  }
}

void Node::greet(const std::string& id, const wire::Hello& hello, Instant now) {
  const auto peer = peer_named(hello.node);
  if (!peer) {
    count_stranger(hello.node.text(), "not in the registry");
    answer(id, wire::Bye{"node " + hello.node.text() + " is not in the registry of " + parts_.options.node.text()});
    return;
  }
  Link& link = *links_[*peer];
  if (link.has_guest() && hello.incarnation < link.incarnation) {
    count_stranger(hello.node.text(), "older than the one that is present");
    answer(id, wire::Bye{"a newer incarnation of " + hello.node.text() + " is present"});
    return;
  }
  const auto& listener = link.lane.listener();
  if (link.has_guest()) {
    lose(*peer, hello.incarnation == link.incarnation ? "its lane started anew" : "it started anew");
  } else if (listener && *listener != hello.incarnation) {
    lose(*peer, "it started anew");
  }
  link.guest = id;
  link.incarnation = hello.incarnation;
  link.frames_received = 0;
  link.received = link.granted = 0;
  link.heard = now;
  guests_[id] = *peer;
  welcome(*peer);
  note_presence(*peer);
}

void Node::hear_guest(PeerIndex peer, zmq::message_t& body, Instant now) {
  Link& link = *links_[peer];
  link.heard = now;
  auto frame = wire::decode(std::as_bytes(std::span(body.data<std::byte>(), body.size())), parts_.options.frame_max);
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
    auto frame =
        wire::decode(std::as_bytes(std::span(body.data<std::byte>(), body.size())), parts_.options.frame_max);
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
      parts_.say(LogLevel::error, "mesh.handshake_refused", {{"peer", link.lane.peer().node.text()}});
    } else if (link.lane.is_open()) {
      lose(peer, "disconnected");
    } else {
      link.lane.disconnected();
    }
  }
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
                    {{"fault", std::string(wire::name_of(refusal.fault))}, {"from", from}, {"why", refusal.why},
                     {"times", std::to_string(times)}});
}

void Node::count_stranger(const std::string& who, const std::string& why) {
  const std::uint64_t times = ++parts_.tally->strangers;
  parts_.say_rarely(times, "mesh.stranger", {{"who", who}, {"why", why}, {"times", std::to_string(times)}});
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
