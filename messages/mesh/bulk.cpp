// Opens the bulk channel: a server where something can be read from here, and pulls as they are wanted.
#include "messages/mesh/bulk.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "messages/mesh/bulk_parts.hpp"
#include "messages/mesh/bulk_pull.hpp"
#include "messages/mesh/bulk_server.hpp"
#include "messages/mesh/sockets.hpp"

namespace sangam {
namespace mesh {

void BulkShared::refused(const wire::Refusal& refusal, const std::string& from) {
  const std::uint64_t times = ++node.tally->refused[std::size_t(refusal.fault)];
  node.say_rarely(times, "bulk.frame_refused",
                  {{"fault", std::string(wire::name_of(refusal.fault))},
                   {"from", from},
                   {"why", refusal.why},
                   {"times", std::to_string(times)}});
}

void set_bulk(zmq::socket_t& socket, const BulkOptions& options) {
  const auto interval = int(options.node.heartbeat_interval.count());
  const auto timeout = int(options.node.heartbeat_timeout.count());
  socket.set(zmq::sockopt::heartbeat_ivl, interval);
  socket.set(zmq::sockopt::heartbeat_timeout, timeout);
  socket.set(zmq::sockopt::heartbeat_ttl, timeout);
}

wire::Decoded<wire::BulkFrame> decode_bulk(const zmq::message_t& message) {
  return wire::decode_bulk({message.data<std::byte>(), message.size()});
}

int receive_parts(zmq::socket_t& socket, zmq::message_t& first, zmq::message_t& second) {
  if (!socket.recv(first, zmq::recv_flags::dontwait)) return 0;
  int parts = 1;
  bool more = first.more();
  while (more) {
    zmq::message_t beyond;
    zmq::message_t& part = parts == 1 ? second : beyond;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) break;
    ++parts;
    more = part.more();
  }
  return parts;
}

namespace {

class OneBulk final : public Bulk {
 public:
  OneBulk(BulkOptions options, LogSink log)
      : shared_(std::move(options), std::move(log)), context_(open_context(shared_.options.node)) {}

  [[nodiscard]] Result<void> start() {
    if (shared_.options.node.listen.empty()) return {};
    server_.emplace(shared_, context_);
    return server_->start();
  }

  void offer(const ActorName& owner, BlobShelf& shelf) override {
    if (server_) server_->offer(owner, shelf);
  }
  void withdraw(const ActorName& owner) override {
    if (server_) server_->withdraw(owner);
  }

  [[nodiscard]] Result<std::unique_ptr<BlobPull>> open(const ActorName& owner) override {
    const auto& options = shared_.options;
    const auto node = options.owners.find(owner);
    const auto is_its = [&](const Peer& peer) { return node != options.owners.end() && peer.node == node->second; };
    const auto peer = std::find_if(options.node.peers.begin(), options.node.peers.end(), is_its);
    if (peer == options.node.peers.end() || peer->node == options.node.node)
      return make_error(ErrorCode::not_found, "bulk channel: no other node offers anything of " + owner.text());
    auto pull = std::make_unique<BulkPull>(shared_, context_, owner, *peer);
    if (auto connected = pull->connect(); !connected) return connected.error();
    return {std::move(pull)};
  }

  [[nodiscard]] BulkCounters counters() const override {
    BulkCounters counters;
    counters.parts_out = shared_.tally.parts_out;
    counters.bytes_out = shared_.tally.bytes_out;
    counters.parts_in = shared_.tally.parts_in;
    counters.bytes_in = shared_.tally.bytes_in;
    const Tally& tally = *shared_.node.tally;
    for (std::size_t fault = 0; fault < wire::kFaults; ++fault) counters.refused[fault] = tally.refused[fault];
    counters.strangers = tally.strangers;
    counters.sessions_now = shared_.tally.sessions;
    return counters;
  }
  [[nodiscard]] std::vector<std::string> endpoints() const override {
    return server_ ? server_->endpoints() : std::vector<std::string>();
  }

 private:
  BulkShared shared_;
  zmq::context_t context_;  // Of its own: its threads and buffers are not the mesh's.
  std::optional<BulkServer> server_;
};

}  // namespace
}  // namespace mesh

Result<std::unique_ptr<Bulk>> open_bulk(BulkOptions options, LogSink log) {
  const auto wrong = [](const std::string& why) { return make_error(ErrorCode::invalid_input, "bulk channel: " + why); };
  if (options.part_max < Bytes{1} || options.parts_in_flight < 1) return wrong("parts must have room for a byte");
  if (options.node.keys && !mesh::is_pair(*options.node.keys)) return wrong("public_key does not belong to secret_key");
  for (const Peer& peer : options.node.peers) {
    if (options.node.keys && peer.public_key.size() != mesh::kKeySize)
      return wrong("peer " + peer.node.text() + " has no public key of 40 characters, but this node has keys");
  }
  auto bulk = std::make_unique<mesh::OneBulk>(std::move(options), std::move(log));
  if (auto started = bulk->start(); !started) return started.error();
  return std::unique_ptr<Bulk>(std::move(bulk));
}

}  // namespace sangam
