// A checkpoint's file, whole or not at all.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam {

/// Writes all tensors in the order of their names beside `path`, syncs, and renames: whoever finds a file there finds a
/// whole one. An error names the file; on a full disk it is `exhausted`, and nothing is left behind.
[[nodiscard]] Result<void> write_safetensors(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors);

}  // namespace sangam
