// The reader's end of a session: a DEALER that belongs to whoever pulls.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "messages/mesh/bulk_parts.hpp"
#include "messages/vocabulary/blob.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam::mesh {

/// Has no thread: ZeroMQ receives beside it, as much as the credit allows, and `next` takes what is there.
class BulkPull final : public BlobPull {
 public:
  /// All that is shared outlives it.
  BulkPull(BulkShared& shared, zmq::context_t& context, ActorName owner, Peer peer);
  ~BulkPull() override;
  BulkPull(const BulkPull&) = delete;
  BulkPull& operator=(const BulkPull&) = delete;

  [[nodiscard]] Result<void> connect();
  void ask(const BlobName& name, Bytes most) override;
  [[nodiscard]] Result<std::optional<BlobPart>> next(Millis wait) override;

 private:
  struct Asked {
    std::uint64_t number = 0;
    BlobName name;
    Bytes most{0};
    std::optional<wire::BulkPart> last = {};  // Of its parts so far.
  };

  void say(wire::BulkBody body);
  void flush();
  void poll(Millis most);
  [[nodiscard]] Result<std::optional<BlobPart>> receive();
  [[nodiscard]] Result<std::optional<BlobPart>> take(const wire::BulkBody& body, int parts);
  [[nodiscard]] Result<BlobPart> take_part(const wire::BulkPart& part, int parts);
  [[nodiscard]] Result<void> take_alive(const wire::BulkAlive& alive);
  [[nodiscard]] Result<void> check_alive();
  [[nodiscard]] Error nonsense(wire::Fault fault, const std::string& why);
  [[nodiscard]] Error over(ErrorCode code, const std::string& why);

  BulkShared& shared_;
  zmq::context_t& context_;
  const ActorName owner_;
  const Peer peer_;
  zmq::socket_t dealer_, monitor_;
  std::deque<wire::FrameBytes> unsaid_;
  std::deque<Asked> asked_;
  std::uint64_t asks_ = 0;
  std::uint64_t received_ = 0, granted_ = 0;  // Parts.
  std::optional<Incarnation> server_;
  Instant heard_{};
  zmq::message_t bytes_;  // Of the part that was returned last.
  std::optional<Error> over_;
};

}  // namespace sangam::mesh
