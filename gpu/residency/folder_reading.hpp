// A model's folder, read piece by piece up to the point where every tensor has a name by its content.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gpu/memory/slot_table.hpp"
#include "storage/checkpoint/model_folder.hpp"

namespace sangam {

/// All that is known of a model without its weights.
struct Blueprint {
  ModelConfig config;
  std::vector<WantedSlot> slots;  ///< Without sources.
  std::string weights_digest;     ///< Hex; of the checkpoint's tensors.
  std::string kv_name;            ///< As in LoadedModel.
  std::vector<std::string> warnings;

  [[nodiscard]] Bytes bytes() const;
};

/// The checkpoint stays mapped as long as this lives.
class FolderReading {
 public:
  static Result<FolderReading> open(const std::filesystem::path& folder);

  /// Hashes at least one tensor and about so many bytes. True when nothing is left.
  bool advance(Bytes most);
  [[nodiscard]] Bytes read() const { return read_; }
  /// Once all is read.
  [[nodiscard]] Result<Blueprint> blueprint() const;
  /// Where a slot's bytes lie.
  [[nodiscard]] std::span<const std::byte> source(const std::string& slot) const {
    return opened_.checkpoint.tensors().at(slot).bytes;
  }

 private:
  explicit FolderReading(ModelFolder opened) : opened_(std::move(opened)) {}

  ModelFolder opened_;
  std::map<std::string, Digest, std::less<>> digests_;
  Bytes read_;
};

}  // namespace sangam
