// Holding, credit and sending of one lane.
#include "messages/mesh/lane.hpp"

#include <utility>

#include "messages/mesh/sockets.hpp"

namespace sangam::mesh {

void Lane::letter(const EnvelopePtr& letter) {
  push(letter, true);
}

void Lane::opened(const ActorName& actor, Incarnation incarnation) {
  push(wire::ActorOpened{actor, incarnation}, false);
}

void Lane::closed(const ActorName& actor, const std::string& why) {
  push(wire::ActorClosed{actor, why}, false);
}

void Lane::push(wire::Body body, bool is_letter) {
  auto frame = wire::encode({.body = std::move(body)}, parts_.options.frame_max);
  if (!frame) {
    ++parts_.tally->letters_refused;
    parts_.say(LogLevel::error, "mesh.letter_refused",
               {{"to", peer_.node.text()},
                {"fault", std::string(name_of(frame.error().fault))},
                {"why", frame.error().why}});
    return;
  }
  const auto bytes = std::int64_t(wire::bytes_of(*frame).size());
  {
    std::lock_guard lock(mutex_);
    if (overflowed_ || held_bytes_ + bytes > parts_.options.held_max.count()) {
      overflowed_ = true;
      if (is_letter) ++parts_.tally->letters_lost;
    } else {
      incoming_.push_back({std::move(*frame), is_letter});
      held_bytes_ += bytes;
      ++parts_.tally->held_frames;
      parts_.tally->held_bytes += std::uint64_t(bytes);
    }
  }
  parts_.wake->ring();
}

void Lane::drop_held() {
  std::lock_guard lock(mutex_);
  for (auto* queue : {&incoming_, &ready_}) {
    for (const Held& held : *queue) {
      if (held.is_letter) ++parts_.tally->letters_lost;
      --parts_.tally->held_frames;
      parts_.tally->held_bytes -= wire::bytes_of(held.frame).size();
    }
    queue->clear();
  }
  held_bytes_ = 0;
  overflowed_ = false;
}

void Lane::start(zmq::context_t& context, std::uint64_t number, bool is_answer) {
  drop_held();
  number_ = number;
  is_answer_ = is_answer;
  const MeshOptions& options = parts_.options;
  const std::string id = options.node.text() + "#" + std::to_string(std::uint64_t(options.incarnation)) +
                         "#" + std::to_string(number);
  close_sockets();
  dealer_ = open_dealer(context, options, peer_, id);
  monitor_ = open_monitor(context, dealer_, "inproc://monitor/" + std::to_string(number));
  dealer_.connect(peer_.endpoint);
  listener_.reset();
  hello_at_.reset();
  frames_sent_ = 0;
  sent_ = granted_ = 0;
  blocked_ = true;
}

void Lane::finish(const std::string& why) {
  if (is_open()) [[maybe_unused]]
    const bool said = say(wire::Bye{why});
  dealer_.set(zmq::sockopt::linger, 200);
  close_sockets();
}

void Lane::close_sockets() {
  // An event for a monitor that nobody reads would block ZeroMQ's own thread for ever.
  if (dealer_) zmq_socket_monitor(dealer_.handle(), nullptr, 0);
  monitor_ = zmq::socket_t();
  dealer_ = zmq::socket_t();
}

bool Lane::send(const wire::FrameBytes& frame) {
  const auto bytes = wire::bytes_of(frame);
  if (!dealer_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait)) {
    blocked_ = true;
    return false;
  }
  ++parts_.tally->frames_out;
  parts_.tally->bytes_out += bytes.size();
  return true;
}

bool Lane::say(wire::Body body) {
  const auto frame = wire::encode({.body = std::move(body)}, parts_.options.frame_max);
  SANGAM_ASSERT(frame.has_value(), frame.error().why);
  return send(*frame);
}

void Lane::say_hello(Instant now) {
  if (hello_at_ && now - *hello_at_ < parts_.options.heartbeat_interval) return;
  if (say(wire::Hello{parts_.options.node, parts_.options.incarnation, number_, is_answer_})) hello_at_ = now;
}

void Lane::heartbeat() {
  // Where the socket takes nothing, what fills it is sign of life enough.
  if (is_open() && say(wire::Heartbeat{frames_sent_})) ++frames_sent_;
}

void Lane::welcomed(const wire::Welcome& welcome) {
  listener_ = welcome.incarnation;
  credited(welcome.granted_bytes);
}

void Lane::flush(Instant now) {
  blocked_ = false;
  if (!is_open()) return say_hello(now);
  {
    std::lock_guard lock(mutex_);
    for (; !incoming_.empty(); incoming_.pop_front()) ready_.push_back(std::move(incoming_.front()));
  }
  while (!ready_.empty()) {
    const Held& next = ready_.front();
    const auto bytes = std::int64_t(wire::bytes_of(next.frame).size());
    if (next.is_letter && sent_ + bytes > granted_) return;
    if (!send(next.frame)) return;
    ++frames_sent_;
    if (next.is_letter) sent_ += bytes;
    held_bytes_ -= bytes;
    --parts_.tally->held_frames;
    parts_.tally->held_bytes -= std::uint64_t(bytes);
    ready_.pop_front();
  }
}

}  // namespace sangam::mesh
