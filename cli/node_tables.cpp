// Reading and checking the registry of nodes.
#include "cli/node_tables.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "messages/mesh/keys.hpp"

namespace sangam {
namespace {

/// Ports of bulk channels, above those of their nodes, where nothing else is said.
constexpr int kBulkPortDistance = 1000;
constexpr int kPortMax = 65'535;

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// "tcp://host:7700" becomes "tcp://host:8700"; nothing where that is no such endpoint, or beyond the last port.
std::optional<std::string> raised(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (!endpoint.starts_with("tcp://") || colon < std::string_view("tcp://").size()) return std::nullopt;
  int port = 0;
  const char* last = endpoint.data() + endpoint.size();
  const auto [end, code] = std::from_chars(endpoint.data() + colon + 1, last, port);
  if (code != std::errc() || end != last || port < 1 || port + kBulkPortDistance > kPortMax) return std::nullopt;
  return endpoint.substr(0, colon + 1) + std::to_string(port + kBulkPortDistance);
}

class NodeTables {
 public:
  explicit NodeTables(MeshConfig& config) : config_(config), roles_(roles_of(config)) {}

  void read(ConfigTable& table) {
    NodeConfig node;
    table.read("name", node.name);
    table.read("endpoint", node.endpoint);
    node.listen = node.endpoint;
    table.read("listen", node.listen);
    table.read("roles", node.roles);
    table.read("public_key", node.public_key);
    if (node.name.empty() || node.endpoint.empty()) table.refuse("name", "a [[node]] needs 'name' and 'endpoint'");
    if (!names_.insert(node.name.text()).second) table.refuse("name", "two nodes are named '" + node.name.text() + "'");
    check_roles(table, node);
    check_key(table, node);
    read_bulk(table, node);
    config_.nodes.push_back(std::move(node));
  }

 private:
  /// Clients may come in at several gateways; everything else is once in a mesh.
  void check_roles(ConfigTable& table, const NodeConfig& node) {
    for (const auto& role : node.roles) {
      if (std::find(roles_.begin(), roles_.end(), role) == roles_.end())
        table.refuse("roles", "'" + role + "' is no role of this mesh; it has " + join(roles_));
      const bool is_new = hosted_.insert(role).second;
      if (role == "gateway") {
        if (++gateways_ > kGatewaysMax) table.refuse("roles", "a mesh has at most " + std::to_string(kGatewaysMax) + " gateways");
      } else if (!is_new) {
        table.refuse("roles", "the role '" + role + "' is hosted by two nodes");
      }
    }
  }

  void check_key(ConfigTable& table, const NodeConfig& node) const {
    if (config_.keys.empty()) {
      if (!node.public_key.empty()) table.refuse("public_key", "'public_key' says nothing without [mesh] 'keys', the folder of secret keys");
    } else if (!is_mesh_key(node.public_key)) {
      table.refuse("public_key", "with [mesh] 'keys' every [[node]] needs 'public_key', 40 characters that `sangam keygen` prints");
    }
  }

  /// Only workers have something to read. Over Unix sockets all of them are on one host, where weights are read from
  /// the memory that they keep with one holder.
  void read_bulk(ConfigTable& table, NodeConfig& node) {
    const bool has_workers =
        std::any_of(node.roles.begin(), node.roles.end(), [](const auto& role) { return role.starts_with("worker/"); });
    if (has_workers) {
      node.bulk = raised(node.endpoint).value_or("");
      node.bulk_listen = raised(node.listen).value_or("");
    }
    if (table.has("bulk")) {
      node.bulk.clear();
      table.read("bulk", node.bulk);
      node.bulk_listen = node.bulk;
    }
    table.read("bulk_listen", node.bulk_listen);
    if (node.bulk.empty()) node.bulk_listen.clear();
    if (!node.bulk.empty() && node.bulk_listen.empty()) node.bulk_listen = node.bulk;
    for (const std::string& endpoint : {node.endpoint, node.bulk}) {
      if (endpoint.empty() || endpoints_.insert(endpoint).second) continue;
      table.refuse(table.has("bulk") ? "bulk" : "endpoint",
                   endpoint + " is taken by another node or its bulk channel, which is " + std::to_string(kBulkPortDistance) +
                       " ports above it; name another one as 'bulk', or \"\" for none");
    }
  }

  MeshConfig& config_;
  const std::vector<std::string> roles_;
  std::set<std::string> hosted_, names_, endpoints_;
  std::uint32_t gateways_ = 0;
};

}  // namespace

void read_node_tables(ConfigTable& root, MeshConfig& config) {
  NodeTables nodes(config);
  for (auto& table : root.tables("node")) nodes.read(table);
  if (!config.keys.empty() && config.nodes.empty())
    root.table("mesh").refuse("keys", "'keys' are for nodes of several hosts; name them as [[node]]");
}

}  // namespace sangam
