// The server's thread: hear, decide, send a round, tick.
#include "messages/mesh/bulk_server.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "messages/mesh/sockets.hpp"

namespace sangam::mesh {
namespace {

constexpr int kFramesPerTurn = 256;
constexpr std::size_t kSessionsMax = 64;
/// Parts that each reader gets before the next frames are heard.
constexpr int kPartsPerTurn = 2;

Instant clock_now() {
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch()));
}

void let_go(void*, void* pin) {
  const std::unique_ptr<std::shared_ptr<const void>> ends(static_cast<std::shared_ptr<const void>*>(pin));
}

/// A message of bytes that stay where they are until it is gone.
zmq::message_t message_of(const BulkSession::Part& part) {
  if (part.bytes.empty()) return zmq::message_t();
  auto pin = std::make_unique<std::shared_ptr<const void>>(part.pin);
  return zmq::message_t(const_cast<std::byte*>(part.bytes.data()), part.bytes.size(), &let_go, pin.release());
}

}  // namespace

BulkServer::~BulkServer() {
  stop_ = true;
  shared_.node.wake->ring();
  if (thread_.joinable()) thread_.join();
}

Result<void> BulkServer::start() {
  const MeshOptions& options = shared_.options.node;
  if (options.keys) door_keeper_.emplace(context_, options.peers);
  router_ = open_router(context_, options);
  set_bulk(router_, shared_.options);
  // Readers send heads only; what is a little too large is counted and refused with a reason.
  router_.set(zmq::sockopt::maxmsgsize, 2 * wire::kBulkFrameMax.count());
  for (const std::string& endpoint : options.listen) {
    auto bound = bind(router_, endpoint);
    if (!bound) return make_error(bound.error().code, "bulk channel: " + bound.error().context);
    endpoints_.push_back(*bound);
  }
  // Signals are for the process's own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

void BulkServer::offer(const ActorName& owner, BlobShelf& shelf) {
  const std::lock_guard lock(mutex_);
  shelves_[owner] = &shelf;
}

void BulkServer::withdraw(const ActorName& owner) {
  {
    const std::lock_guard lock(mutex_);
    shelves_.erase(owner);
    withdrawn_.push_back(owner);
  }
  shared_.node.wake->ring();
}

void BulkServer::run() {
  next_tick_ = clock_now();
  while (!stop_) {
    poll(clock_now());
    shared_.node.wake->clear();
    const Instant now = clock_now();
    if (door_keeper_) shared_.node.say_refused(door_keeper_->answer());
    hear(now);
    end_withdrawn();
    send_round();
    if (now >= next_tick_) tick(now);
  }
  for (auto session = sessions_.begin(); session != sessions_.end();) session = end(session, "the node stops");
  router_ = zmq::socket_t();
}

bool BulkServer::has_work() const {
  return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    return entry.second.can_send() || entry.second.undecided() != nullptr;
  });
}

void BulkServer::poll(Instant now) {
  std::vector<zmq::pollitem_t> items = {{nullptr, shared_.node.wake->fd(), ZMQ_POLLIN, 0},
                                        {router_.handle(), 0, ZMQ_POLLIN, 0}};
  if (door_keeper_) items.push_back({door_keeper_->socket().handle(), 0, ZMQ_POLLIN, 0});
  const auto wait = std::chrono::ceil<Millis>(std::max(Micros(0), next_tick_ - now));
  zmq::poll(items, has_work() ? Millis(0) : wait);
}

void BulkServer::hear(Instant now) {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    zmq::message_t id, body, beyond;
    if (!router_.recv(id, zmq::recv_flags::dontwait)) return;
    const int parts = id.more() ? receive_parts(router_, body, beyond) : 0;
    if (parts == 1) {
      hear_frame(id.to_string(), body, now);
    } else {
      shared_.refused({wire::Fault::malformed, "a frame of a reader has one part"}, id.to_string());
    }
  }
}

/// With keys, a known node cannot speak in the session of another one.
bool BulkServer::is_from(const NodeName& node, zmq::message_t& body) const {
  return !door_keeper_ || node.text() == body.gets("User-Id");
}

void BulkServer::hear_frame(const std::string& id, zmq::message_t& body, Instant now) {
  auto frame = decode_bulk(body);
  if (!frame) return shared_.refused(frame.error(), id);
  if (const auto* opens = std::get_if<wire::BulkOpen>(&frame->body)) return open(id, *opens, body, now);
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) return refuse_stranger(id, id, "this session is not open");
  if (!is_from(session->second.reader(), body)) return refuse_stranger(id, id, "this session belongs to another node");
  take(session, frame->body, now);
}

void BulkServer::open(const std::string& id, const wire::BulkOpen& open, zmq::message_t& body, Instant now) {
  const auto& peers = shared_.options.node.peers;
  const auto same = [&](const Peer& peer) { return peer.node == open.node; };
  if (std::none_of(peers.begin(), peers.end(), same)) {
    return refuse_stranger(id, open.node.text(), "node " + open.node.text() + " is not in the registry of " +
                                                     shared_.options.node.node.text());
  }
  if (!is_from(open.node, body)) return refuse_stranger(id, open.node.text(), "the key is not this node's");
  if (const auto former = sessions_.find(id); former != sessions_.end()) {
    sessions_.erase(former);
    --shared_.tally.sessions;
  }
  if (sessions_.size() >= kSessionsMax)
    return refuse_stranger(id, open.node.text(), std::to_string(kSessionsMax) + " sessions are open; try again later");
  sessions_.emplace(id, BulkSession(open.node, shared_.options.part_max, now));
  ++shared_.tally.sessions;
  shared_.node.say(LogLevel::info, "bulk.session_opened", {{"reader", open.node.text()}});
  answer(id, wire::BulkAlive{shared_.options.node.incarnation});
}

void BulkServer::take(Sessions::iterator session, const wire::BulkBody& body, Instant now) {
  session->second.heard(now);
  if (const auto* ask = std::get_if<wire::BulkAsk>(&body)) {
    if (const auto asked = session->second.ask(*ask); !asked) {
      shared_.refused({wire::Fault::invalid_value, asked.error().context}, session->first);
      end(session, asked.error().context);
    }
  } else if (const auto* credit = std::get_if<wire::BulkCredit>(&body)) {
    session->second.credit(credit->parts);
  } else if (std::holds_alternative<wire::BulkClose>(body)) {
    sessions_.erase(session);
    --shared_.tally.sessions;
  } else {
    shared_.refused({wire::Fault::invalid_value, "a reader has no such frame"}, session->first);
  }
}

void BulkServer::decide(const std::string& id, BulkSession& session) {
  const wire::BulkAsk& ask = *session.undecided();
  const std::lock_guard lock(mutex_);
  const auto shelf = shelves_.find(ask.owner);
  auto blob = shelf == shelves_.end()
                  ? make_error(ErrorCode::not_found, shared_.options.node.node.text() + " offers nothing of " + ask.owner.text())
                  : shelf->second->find(ask.name);
  if (blob) return session.begin(std::move(*blob));
  answer(id, session.refuse(blob.error()));
}

void BulkServer::send_round() {
  for (int i = 0; i < kPartsPerTurn; ++i) {
    for (auto session = sessions_.begin(); session != sessions_.end();) {
      if (session->second.undecided() != nullptr) decide(session->first, session->second);
      const Sent sent =
          session->second.can_send() ? send_part(session->first, session->second.next_part()) : Sent::yes;
      session = sent == Sent::yes ? std::next(session) : end(session, "its connection is gone");
    }
  }
}

/// The credit keeps far below what the socket queues, so a socket that takes nothing has lost its reader.
BulkServer::Sent BulkServer::send_part(const std::string& id, BulkSession::Part part) {
  const auto head = wire::encode({.body = part.head});
  SANGAM_ASSERT(head.has_value(), head.error().why);
  const auto bytes = wire::bytes_of(*head);
  constexpr auto more = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
  try {
    if (!router_.send(zmq::buffer(id), more)) return Sent::not_now;
    if (!router_.send(zmq::buffer(bytes.data(), bytes.size()), more)) return Sent::not_now;
    zmq::message_t body = message_of(part);
    if (!router_.send(body, zmq::send_flags::dontwait)) return Sent::not_now;
  } catch (const zmq::error_t&) {
    return Sent::gone;  // EHOSTUNREACH
  }
  ++shared_.tally.parts_out;
  shared_.tally.bytes_out += part.bytes.size();
  return Sent::yes;
}

BulkServer::Sent BulkServer::answer(const std::string& id, wire::BulkBody body) {
  const auto frame = wire::encode({.body = std::move(body)});
  SANGAM_ASSERT(frame.has_value(), frame.error().why);
  const auto bytes = wire::bytes_of(*frame);
  try {
    if (!router_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return Sent::not_now;
    if (!router_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait)) return Sent::not_now;
  } catch (const zmq::error_t&) {
    return Sent::gone;
  }
  return Sent::yes;
}

void BulkServer::tick(Instant now) {
  next_tick_ = now + shared_.options.node.heartbeat_interval;
  const Millis stall_max = shared_.options.stall_max;
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (session->second.is_stalled(now, stall_max)) {
      session = end(session, "it said nothing for " + std::to_string(stall_max.count()) + " ms");
    } else if (answer(session->first, wire::BulkAlive{shared_.options.node.incarnation}) == Sent::gone) {
      session = end(session, "its connection is gone");
    } else {
      ++session;
    }
  }
}

void BulkServer::end_withdrawn() {
  std::vector<ActorName> withdrawn;
  {
    const std::lock_guard lock(mutex_);
    withdrawn = std::exchange(withdrawn_, {});
  }
  for (const ActorName& owner : withdrawn) {
    for (auto session = sessions_.begin(); session != sessions_.end();) {
      session = session->second.reads_from(owner) ? end(session, owner.text() + " offers nothing any more")
                                                  : std::next(session);
    }
  }
}

BulkServer::Sessions::iterator BulkServer::end(Sessions::iterator session, const std::string& why) {
  shared_.node.say(LogLevel::info, "bulk.session_ended", {{"reader", session->second.reader().text()}, {"why", why}});
  answer(session->first, wire::BulkClose{why});
  --shared_.tally.sessions;
  return sessions_.erase(session);
}

void BulkServer::refuse_stranger(const std::string& id, const std::string& who, const std::string& why) {
  const std::uint64_t times = ++shared_.node.tally->strangers;
  shared_.node.say_rarely(times, "bulk.stranger", {{"who", who}, {"why", why}, {"times", std::to_string(times)}});
  answer(id, wire::BulkClose{why});
}

}  // namespace sangam::mesh
