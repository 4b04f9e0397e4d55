// A mesh's snapshot as GET /admin/snapshot tells it: what models cost and are asked for, and what is where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/http_client.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

struct SnapshotModel {
  ModelId id;
  std::int64_t devices = 1;
  Bytes weights{0};  ///< Of one device, as the next.
  Bytes kv_per_token{0};
  std::optional<ClientTraffic> traffic = {};  ///< Without an oracle nobody knows it, nor the costs.
  std::optional<ModelCosts> costs = {};
};

/// Counts run since the worker's start; those of a model that is not active are 0 meanwhile.
struct SnapshotInstance {
  ModelId model;
  bool active = false;
  std::int64_t prefill_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t context_tokens = 0;
};

struct SnapshotWorker {
  ActorName worker;
  std::uint64_t incarnation = 0;
  std::int64_t sequence = 0;  ///< Of its telemetry.
  std::int64_t devices = 1;
  Bytes memory{0};
  Micros busy{0};
  std::int64_t steps = 0;
  std::vector<SnapshotInstance> instances;

  [[nodiscard]] const SnapshotInstance* find(const ModelId& model) const;
};

struct Snapshot {
  std::vector<SnapshotModel> models;
  std::vector<SnapshotWorker> workers;

  [[nodiscard]] const SnapshotModel* find(const ModelId& model) const;
};

/// A file that `sangam ctl snapshot` has written.
[[nodiscard]] Result<Snapshot> read_snapshot(const std::string& path);
/// `place`: where the text is from, for errors, which name the field.
[[nodiscard]] Result<Snapshot> parse_snapshot(std::string_view text, const std::string& place);
/// The text of a running mesh's snapshot; `key`: an operator's, where it has keys.
[[nodiscard]] Result<std::string> fetch_snapshot(const HttpBase& base, const std::string& key);
/// Both at once.
[[nodiscard]] Result<Snapshot> take_snapshot(const HttpBase& base, const std::string& key);

}  // namespace sangam
