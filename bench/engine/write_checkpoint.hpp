// Writes a random model as a HF checkpoint folder, so that other engines measure the same weights.
#pragma once

#include <filesystem>

#include "bench/engine/random_model.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// `config.json` and `model.safetensors` in `folder`, which is made if it is not there.
[[nodiscard]] Result<void> write_checkpoint(const RandomModel& model, const std::filesystem::path& folder);

}  // namespace sangam
