// Asking, receiving and proving one session's frames.
#include "messages/mesh/bulk_pull.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "messages/mesh/sockets.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::mesh {
namespace {

/// Until the first sign of life: names are resolved, connections made and keys exchanged in it.
constexpr Millis kConnectMax{3000};
constexpr int kSignsHeld = 256;

Instant clock_now() {
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

BulkPull::BulkPull(BulkShared& shared, zmq::context_t& context, ActorName owner, Peer peer)
    : shared_(shared), context_(context), owner_(std::move(owner)), peer_(std::move(peer)), heard_(clock_now()) {}

BulkPull::~BulkPull() {
  if (!dealer_) return;
  if (server_ && !over_) {
    say(wire::BulkClose{"the reader is done"});
    flush();
    dealer_.set(zmq::sockopt::linger, 100);
  }
  // An event for a monitor that nobody reads would block ZeroMQ's own thread for ever.
  zmq_socket_monitor(dealer_.handle(), nullptr, 0);
}

Result<void> BulkPull::connect() {
  const MeshOptions& options = shared_.options.node;
  const std::string number = std::to_string(++shared_.pulls);
  const std::string id = options.node.text() + "#" + std::to_string(std::uint64_t(options.incarnation)) + "#bulk" + number;
  try {
    dealer_ = open_dealer(context_, options, peer_, id);
    set_bulk(dealer_, shared_.options);
    // What a server that heeds no credit can make us hold. Not much less: signs of life queue here too while the reader
    // is busy, and a connection that is not read for the heartbeat's timeout is given up.
    dealer_.set(zmq::sockopt::rcvhwm, int(shared_.options.parts_in_flight) + kSignsHeld);
    dealer_.set(zmq::sockopt::maxmsgsize, 2 * std::max(shared_.options.part_max, wire::kBulkFrameMax).count());
    monitor_ = open_monitor(context_, dealer_, "inproc://bulk-monitor/" + number);
    dealer_.connect(peer_.endpoint);
  } catch (const zmq::error_t& e) {
    return make_error(ErrorCode::invalid_input, "bulk channel: cannot connect to " + peer_.node.text() + " at " +
                                                    peer_.endpoint + ": " + e.what());
  }
  granted_ = shared_.options.parts_in_flight;
  say(wire::BulkOpen{options.node, options.incarnation});
  say(wire::BulkCredit{granted_});
  return {};
}

void BulkPull::ask(const BlobName& name, Bytes most) {
  SANGAM_ASSERT(asked_.size() < kBlobAsksMax, asked_.size());
  asked_.push_back({++asks_, name, most});
  say(wire::BulkAsk{asks_, owner_, name});
}

void BulkPull::say(wire::BulkBody body) {
  if (over_) return;
  auto frame = wire::encode({.body = std::move(body)});
  if (frame) {
    unsaid_.push_back(std::move(*frame));
    flush();
  } else {
    over_ = over(ErrorCode::invalid_input, frame.error().why);
  }
}

void BulkPull::flush() {
  for (; !unsaid_.empty(); unsaid_.pop_front()) {
    const auto bytes = wire::bytes_of(unsaid_.front());
    if (!dealer_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait)) return;
  }
}

void BulkPull::poll(Millis most) {
  const short out = unsaid_.empty() ? 0 : ZMQ_POLLOUT;
  std::array<zmq::pollitem_t, 2> items{{{dealer_.handle(), 0, short(ZMQ_POLLIN | out), 0},
                                        {monitor_.handle(), 0, ZMQ_POLLIN, 0}}};
  zmq::poll(items.data(), items.size(), most);
}

Result<std::optional<BlobPart>> BulkPull::next(Millis wait) {
  // Whoever asks for the next part is done with the last one.
  bytes_.rebuild();
  const std::uint64_t room = shared_.options.parts_in_flight;
  if (received_ + room - granted_ >= std::max<std::uint64_t>(1, room / 4)) {
    granted_ = received_ + room;
    say(wire::BulkCredit{granted_});
  }
  const Instant end = clock_now() + wait;
  while (true) {
    if (over_) return *over_;
    flush();
    auto part = receive();
    if (!part) {
      over_ = part.error();
    } else if (*part) {
      return part;
    } else if (auto alive = check_alive(); !alive) {
      over_ = alive.error();
    } else if (const Instant now = clock_now(); now >= end) {
      return std::optional<BlobPart>();
    } else {
      poll(std::chrono::ceil<Millis>(end - now));
    }
  }
}

/// What came before the connection broke is still heard: this is asked only when nothing is there.
Result<void> BulkPull::check_alive() {
  for (LinkEvent event = next_event(monitor_); event != LinkEvent::none; event = next_event(monitor_)) {
    if (event == LinkEvent::refused) {
      return over(ErrorCode::unavailable, "the handshake was refused; look at the keys of both nodes");
    }
    if (server_) return over(ErrorCode::unavailable, "disconnected");
  }
  const Millis most = server_ ? shared_.options.node.heartbeat_timeout
                              : std::max(kConnectMax, shared_.options.node.heartbeat_timeout);
  const Micros silent = clock_now() - heard_;
  if (silent <= most) return {};
  return over(ErrorCode::unavailable, "silent for " + std::to_string(silent / Millis(1)) + " ms");
}

Result<std::optional<BlobPart>> BulkPull::receive() {
  zmq::message_t head;
  for (int parts = 0; (parts = receive_parts(dealer_, head, bytes_)) > 0;) {
    heard_ = clock_now();
    auto frame = decode_bulk(head);
    if (!frame && frame.error().fault == wire::Fault::unknown_message) {
      shared_.refused(frame.error(), peer_.node.text());
      continue;
    }
    if (!frame) return nonsense(frame.error().fault, frame.error().why);
    auto part = take(frame->body, parts);
    if (!part || *part) return part;
  }
  return std::optional<BlobPart>();
}

Result<std::optional<BlobPart>> BulkPull::take(const wire::BulkBody& body, int parts) {
  if (const auto* part = std::get_if<wire::BulkPart>(&body)) {
    auto taken = take_part(*part, parts);
    if (!taken) return taken.error();
    return std::optional<BlobPart>(std::move(*taken));
  }
  if (parts != 1) return nonsense(wire::Fault::malformed, "a frame without bytes has one part");
  if (const auto* alive = std::get_if<wire::BulkAlive>(&body)) {
    if (auto taken = take_alive(*alive); !taken) return taken.error();
    return std::optional<BlobPart>();
  }
  if (const auto* refused = std::get_if<wire::BulkRefused>(&body)) {
    if (refused->code == ErrorCode::none) return nonsense(wire::Fault::invalid_value, "a refusal without a code");
    return over(refused->code, refused->why);
  }
  if (const auto* close = std::get_if<wire::BulkClose>(&body)) return over(ErrorCode::unavailable, close->why);
  return nonsense(wire::Fault::invalid_value, "a server has no such frame");
}

Result<void> BulkPull::take_alive(const wire::BulkAlive& alive) {
  if (server_ && *server_ != alive.incarnation) return over(ErrorCode::unavailable, "it started anew");
  server_ = alive.incarnation;
  return {};
}

Result<BlobPart> BulkPull::take_part(const wire::BulkPart& part, int parts) {
  const auto wrong = [&](const std::string& why) {
    return nonsense(wire::Fault::invalid_value, "part of ask " + std::to_string(part.number) + ": " + why);
  };
  if (parts != 2) return nonsense(wire::Fault::malformed, "a part of a blob has two parts, not " + std::to_string(parts));
  if (bytes_.size() != std::size_t(part.bytes.count()) || part.bytes > shared_.options.part_max) {
    return nonsense(bytes_.size() < std::size_t(part.bytes.count()) ? wire::Fault::truncated : wire::Fault::oversized,
                    "bytes=" + std::to_string(bytes_.size()) + ", its head says " + std::to_string(part.bytes.count()) +
                        ", limit=" + std::to_string(shared_.options.part_max.count()));
  }
  if (asked_.empty() || asked_.front().number != part.number) return wrong("nobody waits for it now");
  Asked& asked = asked_.front();
  const Bytes expected = asked.last ? asked.last->offset + asked.last->bytes : Bytes{0};
  const bool same_blob = !asked.last || (asked.last->size == part.size && asked.last->hash == part.hash);
  // By difference: a sum could wrap.
  if (part.size > asked.most || part.offset != expected || part.bytes > part.size - part.offset || !same_blob ||
      (part.bytes == Bytes{0} && part.size != Bytes{0})) {
    return wrong("offset=" + std::to_string(part.offset.count()) + " expected=" + std::to_string(expected.count()) +
                 " bytes=" + std::to_string(part.bytes.count()) + " of " + std::to_string(part.size.count()) +
                 " limit=" + std::to_string(asked.most.count()));
  }
  ++received_;
  ++shared_.tally.parts_in;
  shared_.tally.bytes_in += bytes_.size();
  BlobPart taken{asked.name, part.size, part.offset, {bytes_.data<std::byte>(), bytes_.size()}, part.hash};
  asked.last = part;
  if (taken.is_last()) asked_.pop_front();
  return taken;
}

Error BulkPull::nonsense(wire::Fault fault, const std::string& why) {
  shared_.refused({fault, why}, peer_.node.text());
  return over(ErrorCode::corrupt, std::string(wire::name_of(fault)) + ": " + why);
}

Error BulkPull::over(ErrorCode code, const std::string& why) {
  return make_error(code, "bulk channel to " + owner_.text() + " at " + peer_.node.text() + ": " + why);
}

}  // namespace sangam::mesh
