// Opens the mesh: a directory of actors, and a node when there is somebody to talk with.
#include "messages/mesh/mesh.hpp"

#include <set>
#include <utility>

#include "messages/mesh/directory.hpp"
#include "messages/mesh/node.hpp"

namespace sangam {
namespace {

/// A routing id is the node's name and two numbers, and has at most 255 bytes.
constexpr std::size_t kNodeNameMax = 200;

class OneMesh final : public Mesh {
 public:
  void attach(const ActorName& actor, Incarnation incarnation, Mailbox mailbox) override {
    directory_.attach(actor, incarnation, std::move(mailbox));
  }
  void detach(const ActorName& actor, const std::string& why) override { directory_.detach(actor, why); }
  void send(Envelope envelope) override { directory_.send(std::move(envelope)); }
  [[nodiscard]] std::vector<ActorFound> present() const override { return directory_.present(); }
  [[nodiscard]] std::vector<std::string> endpoints() const override {
    return node_ ? node_->endpoints() : std::vector<std::string>();
  }
  [[nodiscard]] MeshCounters counters() const override {
    MeshCounters counters;
    counters.letters_local = directory_.letters_local();
    counters.letters_away = directory_.letters_away();
    if (node_) node_->add_counters(counters);
    return counters;
  }
  [[nodiscard]] Result<void> start_node(mesh::NodeParts parts) {
    node_ = std::make_unique<mesh::Node>(std::move(parts), directory_);
    return node_->start();
  }

 private:
  mesh::Directory directory_;
  std::unique_ptr<mesh::Node> node_;  // Ends first: it calls the directory.
};

Result<void> check(const MeshOptions& options) {
  auto wrong = [](std::string why) {
    return make_error(ErrorCode::invalid_input, "mesh: " + std::move(why));
  };
  const std::string& name = options.node.text();
  if (name.empty() || name.size() > kNodeNameMax) {
    return wrong("node name \"" + name + "\" must have 1 to " + std::to_string(kNodeNameMax) + " bytes");
  }
  if (options.window < options.frame_max) {
    return wrong("window=" + std::to_string(options.window.count()) + " is below frame_max=" +
                 std::to_string(options.frame_max.count()) + "; the largest letter could never be sent");
  }
  if (options.heartbeat_interval <= Millis(0) || options.heartbeat_timeout < 2 * options.heartbeat_interval) {
    return wrong("heartbeat_timeout must be at least twice heartbeat_interval");
  }
  if (options.keys && !mesh::is_pair(*options.keys)) return wrong("public_key does not belong to secret_key");
  std::set<NodeName> names;
  for (const Peer& peer : options.peers) {
    if (peer.node.empty() || peer.endpoint.empty()) return wrong("a peer needs a name and an endpoint");
    if (options.keys && peer.public_key.size() != mesh::kKeySize) {
      return wrong("peer " + peer.node.text() +
                   " has no public key of 40 characters, but this node has keys");
    }
    if (!names.insert(peer.node).second) return wrong("peer " + peer.node.text() + " is listed twice");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Mesh>> open_mesh(MeshOptions options, LogSink log) {
  auto mesh = std::make_unique<OneMesh>();
  if (!options.listen.empty() || !options.peers.empty()) {
    if (auto checked = check(options); !checked) return checked.error();
    const auto mismatches = wire::schema_mismatches();
    SANGAM_ASSERT(mismatches.empty(), mismatches.front());
    if (auto started = mesh->start_node({std::move(options), std::move(log)}); !started)
      return started.error();
  }
  return std::unique_ptr<Mesh>(std::move(mesh));
}

}  // namespace sangam
