// A checkpoint in HF's layout: `model.safetensors`, or shards that `model.safetensors.index.json` names.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/tensor.hpp"
#include "storage/file/mapped_file.hpp"

namespace sangam {

/// Owns the mappings that its views point into. Everything is checked at `open`; nothing is read until used.
class Checkpoint {
 public:
  using Tensors = std::map<std::string, TensorView, std::less<>>;

  /// The single file wins where both layouts are there, as in HF.
  [[nodiscard]] static Result<Checkpoint> open(const std::filesystem::path& folder);

  /// The view is valid as long as this checkpoint (moving it does not matter).
  [[nodiscard]] Result<TensorView> tensor(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return tensors_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const;  ///< Sorted.
  [[nodiscard]] const Tensors& tensors() const { return tensors_; }
  [[nodiscard]] Bytes bytes() const;  ///< Of all tensors.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Checkpoint(std::filesystem::path folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Result<std::vector<std::string>> add_file(const std::string& file_name);
  [[nodiscard]] Result<void> add_shards();

  std::filesystem::path folder_;
  std::vector<MappedFile> files_;
  Tensors tensors_;
};

}  // namespace sangam
