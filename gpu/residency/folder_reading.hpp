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
  std::string config_text;        ///< Its config.json.
  std::string kv_name;            ///< As in LoadedModel.
  std::string stamp;              ///< Of the folder when it was read; empty: not read from a folder.
  double prefill_tokens_per_second = 0.0;  ///< Measured on this device; 0: not yet.
  std::vector<std::string> warnings;

  [[nodiscard]] Bytes bytes() const;
};

/// The weights alone do not decide keys and values: equal ones may be turned by another rotary base.
[[nodiscard]] std::string kv_name_of(const Blueprint& blueprint);

/// What somebody knows who has read a folder.
struct NamedWeights {
  std::map<std::string, Digest, std::less<>> slots;
  std::string weights_digest;  ///< Hex.
  std::string stamp;           ///< Of the folder then.
  double prefill_tokens_per_second = 0.0;
};

/// All but the slots, as text and back.
[[nodiscard]] std::string note_of(const Blueprint& blueprint);
[[nodiscard]] NamedWeights weights_noted(const std::string& note);

/// Names, sizes and times of change of a folder's weights, and what its config.json says: equal as long as nobody
/// has touched them.
[[nodiscard]] Result<std::string> stamp_of(const std::filesystem::path& folder);

/// The checkpoint stays mapped as long as this lives.
class FolderReading {
 public:
  static Result<FolderReading> open(const std::filesystem::path& folder);

  /// Hashes the next `most` bytes, at least one. True when nothing is left.
  bool advance(Bytes most);
  [[nodiscard]] Bytes read() const { return read_; }
  /// Once all is read.
  [[nodiscard]] Result<Blueprint> blueprint() const;
  /// Of weights that are named already, by whoever has read this folder before: nothing need be read. Fails where
  /// the checkpoint has other tensors.
  [[nodiscard]] Result<Blueprint> blueprint(const NamedWeights& weights) const;
  /// Where a slot's bytes lie.
  [[nodiscard]] std::span<const std::byte> source(const std::string& slot) const {
    return opened_.checkpoint.tensors().at(slot).bytes;
  }
  /// The same; empty where the checkpoint has no such tensor.
  [[nodiscard]] std::span<const std::byte> find(const std::string& slot) const {
    const auto found = opened_.checkpoint.tensors().find(slot);
    return found == opened_.checkpoint.tensors().end() ? std::span<const std::byte>() : found->second.bytes;
  }

 private:
  FolderReading(ModelFolder opened, std::string config, std::string stamp)
      : opened_(std::move(opened)), config_(std::move(config)), stamp_(std::move(stamp)) {}

  [[nodiscard]] Result<Blueprint> blueprint(const std::map<std::string, Digest, std::less<>>& digests,
                                            std::string weights_digest) const;

  ModelFolder opened_;
  std::string config_;  ///< config.json,
  std::string stamp_;   ///< and of the folder, from before anything was read: what changes later is noticed.
  std::map<std::string, Digest, std::less<>> digests_;
  DigestStream stream_;     ///< Of the next tensor,
  std::size_t offset_ = 0;  ///< as far as it is hashed.
  Bytes read_;
};

}  // namespace sangam
