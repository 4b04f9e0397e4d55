// A pool's file: which models are to share, what judges them, and which forms they may take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/merger/run/merge_run.hpp"

namespace sangam {

struct PoolModelFile {
  std::string name;
  std::filesystem::path folder;
  std::filesystem::path task;
  double budget = 2.0;  ///< Points.
};

struct MergePoolFile {
  std::vector<PoolModelFile> models;
  std::filesystem::path ancestor;  ///< Empty: none is known.
  std::uint64_t seed = 1;          ///< Of the samples.
  merging::MergeOptions options;
};

/// Paths are relative to the file's folder. Errors name file and line.
[[nodiscard]] Result<MergePoolFile> read_merge_pool(const std::string& path);

/// Opens the models, reads and deals their items, and computes what their slots see.
[[nodiscard]] Result<std::unique_ptr<const merging::Pool>> open_merge_pool(const MergePoolFile& file, int threads);

}  // namespace sangam
