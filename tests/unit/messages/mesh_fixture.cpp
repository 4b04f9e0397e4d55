// Registries of nodes for tests.
#include "tests/unit/messages/mesh_fixture.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

namespace sangam::testing {
namespace {

/// A port that was free a moment ago.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

Registry::Registry(bool over_tcp) : over_tcp_(over_tcp) {
  std::string name = (std::filesystem::temp_directory_path() / "mesh-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  directory_ = name;
}

Registry::~Registry() {
  std::filesystem::remove_all(directory_);
}

Registry& Registry::add(const std::string& node) {
  const std::string endpoint =
      over_tcp_ ? "tcp://127.0.0.1:" + std::to_string(free_port()) : "ipc://" + directory_ + "/" + node;
  peers_.push_back({NodeName(node), endpoint, {}});
  return *this;
}

MeshOptions Registry::options(const std::string& node, std::uint64_t incarnation) const {
  MeshOptions options;
  options.node = NodeName(node);
  options.incarnation = Incarnation{incarnation};
  options.listen = {endpoint(node)};
  options.peers = peers_;
  options.heartbeat_interval = Millis(50);
  options.heartbeat_timeout = Millis(250);
  return options;
}

std::unique_ptr<Mesh> Registry::open(const std::string& node, std::uint64_t incarnation) const {
  return open_mesh(options(node, incarnation), ignore_logs()).value();
}

void Registry::set_key(const std::string& node, const std::string& public_key) {
  for (Peer& peer : peers_) {
    if (peer.node.text() == node) peer.public_key = public_key;
  }
}

const std::string& Registry::endpoint(const std::string& node) const {
  for (const Peer& peer : peers_) {
    if (peer.node.text() == node) return peer.endpoint;
  }
  FAIL("no such node: " << node);
  return peers_.front().endpoint;
}

}  // namespace sangam::testing
