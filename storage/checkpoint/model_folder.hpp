// A model as it lies on disk, opened and checked as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "storage/checkpoint/hf_config.hpp"
#include "storage/checkpoint/model_config.hpp"
#include "storage/checkpoint/safetensors.hpp"

namespace sangam {

struct ModelFolder {
  ModelConfig config;  ///< Tied as in effect; end tokens of both files.
  GenerationDefaults generation;
  Checkpoint checkpoint;
  std::vector<std::string> warnings;
};

/// Fails if any of the files is damaged or they do not belong together; then nothing of the model may serve.
[[nodiscard]] Result<ModelFolder> open_model(const std::filesystem::path& folder);

}  // namespace sangam
