// The models that this mesh knows, kept across restarts.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/hash/digest.hpp"
#include "storage/store/store.hpp"

namespace sangam {

/// Calendar time, for people and across hosts; no decision of a core depends on it.
using UnixTime = std::chrono::sys_time<std::chrono::milliseconds>;

struct CatalogEntry {
  std::string folder;
  Digest weights;  ///< weights_digest of the checkpoint
  Digest config;   ///< of config.json's bytes
  Bytes bytes;     ///< of all tensors
  UnixTime first_seen{};
  std::optional<UnixTime> last_loaded;

  bool operator==(const CatalogEntry&) const = default;
};

/// Borrows the store.
class Catalog {
 public:
  explicit Catalog(Store& store) : store_(store) {}

  [[nodiscard]] Result<void> put(const ModelId& model, const CatalogEntry& entry);
  [[nodiscard]] Result<std::optional<CatalogEntry>> find(const ModelId& model) const;
  [[nodiscard]] Result<std::map<ModelId, CatalogEntry>> all() const;
  [[nodiscard]] Result<void> erase(const ModelId& model);

 private:
  Store& store_;
};

}  // namespace sangam
