// What a node does with what its peers say: letters, presence, credit, and the loss of a peer.
#include "messages/mesh/node.hpp"

namespace sangam::mesh {
namespace {

/// Actors that a peer may open before our own lane to it is open.
constexpr std::size_t kEarlyMax = 10000;

}  // namespace

void Node::take(PeerIndex peer, const wire::Body& body, std::int64_t bytes) {
  if (const auto* letter = std::get_if<EnvelopePtr>(&body)) return take_letter(peer, *letter, bytes);
  if (const auto* opened = std::get_if<wire::ActorOpened>(&body)) return take_opened(peer, *opened);
  if (const auto* closed = std::get_if<wire::ActorClosed>(&body)) return take_closed(peer, *closed);
  if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&body)) return take_heartbeat(peer, *heartbeat);
  if (const auto* bye = std::get_if<wire::Bye>(&body)) return lose(peer, "goodbye: " + bye->why);
  count_refusal({wire::Fault::invalid_value, "a speaker has no such frame"},
                links_[peer]->lane.peer().node.text());
}

void Node::take_letter(PeerIndex peer, const EnvelopePtr& letter, std::int64_t bytes) {
  Link& link = *links_[peer];
  link.received += bytes;
  if (link.received > link.granted) {
    return lose(peer, "it sent beyond its credit: bytes=" + std::to_string(link.received) +
                          " granted=" + std::to_string(link.granted));
  }
  directory_.deliver(on_tab(letter, link.tab, bytes));
}

void Node::take_opened(PeerIndex peer, const wire::ActorOpened& opened) {
  Link& link = *links_[peer];
  if (!link.lane.is_open()) {
    if (link.early.size() >= kEarlyMax) return lose(peer, "it opened too many actors");
    link.early.push_back(opened);
  } else if (!directory_.found(peer, opened.actor, opened.incarnation)) {
    parts_.say(LogLevel::error, "mesh.name_taken",
               {{"actor", opened.actor.text()}, {"peer", link.lane.peer().node.text()}});
  }
}

void Node::take_closed(PeerIndex peer, const wire::ActorClosed& closed) {
  std::erase_if(links_[peer]->early, [&](const auto& opened) { return opened.actor == closed.actor; });
  directory_.lost(peer, closed.actor, closed.why);
}

void Node::take_heartbeat(PeerIndex peer, const wire::Heartbeat& heartbeat) {
  const std::uint64_t before = links_[peer]->frames_received - 1;
  if (heartbeat.frames_sent == before) return;
  lose(peer, "frames were lost on the way: sent=" + std::to_string(heartbeat.frames_sent) +
                 " received=" + std::to_string(before));
}

void Node::take_answer(PeerIndex peer, const wire::Body& body) {
  Link& link = *links_[peer];
  if (const auto* welcome = std::get_if<wire::Welcome>(&body)) {
    take_welcome(peer, *welcome);
  } else if (const auto* credit = std::get_if<wire::Credit>(&body)) {
    link.lane.credited(credit->granted_bytes);
  } else if (const auto* bye = std::get_if<wire::Bye>(&body)) {
    if (link.lane.is_open()) return lose(peer, "goodbye: " + bye->why);
    link.begin_anew = true;
    if (link.last_refusal == bye->why) return;
    link.last_refusal = bye->why;
    parts_.say(LogLevel::error, "mesh.hello_refused",
               {{"peer", link.lane.peer().node.text()}, {"why", bye->why}});
  } else {
    count_refusal({wire::Fault::invalid_value, "a listener has no such frame"}, link.lane.peer().node.text());
  }
}

void Node::take_welcome(PeerIndex peer, const wire::Welcome& welcome) {
  Link& link = *links_[peer];
  if (welcome.node != link.lane.peer().node) {
    const std::string why = "at " + link.lane.peer().endpoint + " is node " + welcome.node.text();
    if (link.last_refusal != why) {
      parts_.say(LogLevel::error, "mesh.wrong_node", {{"peer", link.lane.peer().node.text()}, {"why", why}});
    }
    link.last_refusal = why;
    return;
  }
  if (link.lane.is_open()) return link.lane.credited(welcome.granted_bytes);
  if (link.has_guest() && welcome.incarnation != link.incarnation) return lose(peer, "it started anew");
  link.last_refusal.clear();
  link.lane.welcomed(welcome);
  directory_.open(peer, link.lane);
  for (const wire::ActorOpened& opened : std::exchange(link.early, {})) take_opened(peer, opened);
  note_presence(peer);
}

void Node::note_presence(PeerIndex peer) {
  Link& link = *links_[peer];
  if (!link.is_present()) return;
  ++parts_.tally->peers_found;
  ++parts_.tally->peers_now;
  parts_.say(LogLevel::info, "mesh.peer_found",
             {{"peer", link.lane.peer().node.text()},
              {"incarnation", std::to_string(std::uint64_t(link.incarnation))}});
}

void Node::part(PeerIndex peer, const std::string& why) {
  Link& link = *links_[peer];
  const std::string& name = link.lane.peer().node.text();
  if (link.is_present()) {
    ++parts_.tally->peers_lost;
    --parts_.tally->peers_now;
    parts_.say(LogLevel::warning, "mesh.peer_lost", {{"peer", name}, {"why", why}});
  }
  directory_.close(peer, "node " + name + " lost: " + why);
  guests_.erase(link.guest);
  link.guest.clear();
  link.early.clear();
  link.lane.drop_held();
  if (link.lane.is_open()) directory_.open(peer, link.lane);
}

void Node::lose(PeerIndex peer, const std::string& why, bool is_answer) {
  part(peer, why);
  begin_lane(peer, is_answer);
}

void Node::begin_lane(PeerIndex peer, bool is_answer) {
  Link& link = *links_[peer];
  directory_.close(peer, "");  // Its outlet; of its actors none is left.
  link.begin_anew = false;
  link.lane.start(context_, ++lanes_started_, is_answer);
}

void Node::welcome(PeerIndex peer) {
  Link& link = *links_[peer];
  const std::int64_t granted = std::max(link.granted, link.received + link.tab->room());
  if (answer(link.guest, wire::Welcome{parts_.options.node, parts_.options.incarnation, Bytes(granted)})) {
    link.granted = granted;
  }
}

void Node::grant(PeerIndex peer) {
  Link& link = *links_[peer];
  const std::int64_t granted = link.received + link.tab->room();
  if (granted > link.granted && answer(link.guest, wire::Credit{Bytes(granted)})) link.granted = granted;
}

}  // namespace sangam::mesh
