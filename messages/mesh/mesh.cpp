// Opens the mesh: a directory of actors, and a node when there is somebody to talk with.
#include "messages/mesh/mesh.hpp"

#include <utility>

#include "messages/mesh/directory.hpp"

namespace sangam {
namespace {

class OneMesh final : public Mesh {
 public:
  void attach(const ActorName& actor, Incarnation incarnation, Mailbox mailbox) override {
    directory_.attach(actor, incarnation, std::move(mailbox));
  }
  void detach(const ActorName& actor, const std::string& why) override { directory_.detach(actor, why); }
  void send(Envelope envelope) override { directory_.send(std::move(envelope)); }
  [[nodiscard]] std::vector<ActorFound> present() const override { return directory_.present(); }
  [[nodiscard]] std::vector<std::string> endpoints() const override { return {}; }
  [[nodiscard]] MeshCounters counters() const override {
    MeshCounters counters;
    counters.letters_local = directory_.letters_local();
    counters.letters_away = directory_.letters_away();
    return counters;
  }

 private:
  mesh::Directory directory_;
};

}  // namespace

Result<std::unique_ptr<Mesh>> open_mesh(MeshOptions options, LogSink log) {
  if (options.listen.empty() && options.peers.empty()) return std::unique_ptr<Mesh>(new OneMesh);
  (void)log;
  return make_error(ErrorCode::unavailable, "the mesh cannot reach other nodes yet");
}

}  // namespace sangam
