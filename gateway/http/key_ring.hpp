// Which key belongs to which tenant.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gateway/options.hpp"

namespace sangam {

class KeyRing {
 public:
  explicit KeyRing(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

  /// Whether the key is an operator's. Without any keys, whoever is on this host is one.
  [[nodiscard]] bool is_operator(std::string_view key, bool from_this_host) const {
    if (keys_.empty()) return from_this_host;
    bool is = false;
    for (const ApiKey& known : keys_) {
      if (equal(known.key, key)) is = known.admin;
    }
    return is;
  }

  /// Nothing where the key is not known. Without any keys everyone is the tenant "default". Takes the same
  /// time wherever two keys of one length differ.
  [[nodiscard]] std::optional<TenantId> tenant_of(std::string_view key) const {
    if (keys_.empty()) return TenantId("default");
    std::optional<TenantId> tenant;
    for (const ApiKey& known : keys_) {
      if (equal(known.key, key)) tenant = known.tenant;
    }
    return tenant;
  }

 private:
  static bool equal(std::string_view a, std::string_view b) {
    unsigned char difference = a.size() == b.size() && !a.empty() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
    }
    return difference == 0;
  }
  std::vector<ApiKey> keys_;
};

}  // namespace sangam
