// Rotary embeddings as a config.json states them, in each of the three spellings that are in use.
#pragma once

#include "storage/checkpoint/model_config.hpp"
#include "storage/json/json_fields.hpp"

namespace sangam {

/// Sets `config.rope_theta` and `config.rope`; `config.context` is read, so it must be set before. Refusals
/// are left in `fields`.
void read_rope(JsonFields& fields, const std::string& place, ModelConfig& config);

}  // namespace sangam
