// One thread that hands out the blobs that actors of this process offer.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "messages/mesh/bulk_parts.hpp"
#include "messages/mesh/bulk_session.hpp"
#include "messages/mesh/zap.hpp"

namespace sangam::mesh {

/// Readers take turns, a part each. Bytes leave from where they lie: ZeroMQ holds the blob's pin until its part is
/// with the kernel.
class BulkServer {
 public:
  /// Both outlive it.
  BulkServer(BulkShared& shared, zmq::context_t& context) : shared_(shared), context_(context) {}
  ~BulkServer();
  BulkServer(const BulkServer&) = delete;
  BulkServer& operator=(const BulkServer&) = delete;

  /// Binds and starts the thread.
  [[nodiscard]] Result<void> start();
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }

  void offer(const ActorName& owner, BlobShelf& shelf);
  void withdraw(const ActorName& owner);

 private:
  using Sessions = std::map<std::string, BulkSession>;  // By routing id.

  void run();
  void poll(Instant now);
  void hear(Instant now);
  void hear_frame(const std::string& id, zmq::message_t& body, Instant now);
  void open(const std::string& id, const wire::BulkOpen& open, zmq::message_t& body, Instant now);
  void take(Sessions::iterator session, const wire::BulkBody& body, Instant now);
  void decide(const std::string& id, BulkSession& session);
  void send_round();
  void tick(Instant now);
  void end_withdrawn();
  Sessions::iterator end(Sessions::iterator session, const std::string& why);

  enum class Sent : std::uint8_t { yes, not_now, gone };
  [[nodiscard]] Sent send_part(const std::string& id, BulkSession::Part part);
  Sent answer(const std::string& id, wire::BulkBody body);
  void refuse_stranger(const std::string& id, const std::string& who, const std::string& why);
  [[nodiscard]] bool is_from(const NodeName& node, zmq::message_t& body) const;
  [[nodiscard]] bool has_work() const;

  BulkShared& shared_;
  zmq::context_t& context_;
  std::optional<DoorKeeper> door_keeper_;  // With keys.
  zmq::socket_t router_;
  std::vector<std::string> endpoints_;
  Sessions sessions_;
  Instant next_tick_{};

  std::mutex mutex_;  // Held while a shelf is asked, so that a withdrawn one is not.
  std::map<ActorName, BlobShelf*> shelves_;
  std::vector<ActorName> withdrawn_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sangam::mesh
