// HF's config.json and generation_config.json as our ModelConfig and GenerationDefaults.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/model_config.hpp"

namespace sangam {

/// What the makers of a model advise for sampling. An absent value is one that they did not state.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;  ///< 0: no limit
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<bool> do_sample;
  std::optional<std::int64_t> max_new_tokens;
  std::vector<TokenId> eos_tokens;
};

/// Absent fields mean what transformers takes them to mean, except the sizes that decide the tensors' shapes,
/// which must be stated. What we could only compute wrongly (another architecture, activation, rotary type,
/// quantisation, windows in some layers only) is refused by name. `place` is what errors call the text.
[[nodiscard]] Result<ModelConfig> parse_model_config(std::string_view json, const std::string& place);
[[nodiscard]] Result<ModelConfig> read_model_config(const std::filesystem::path& folder);

[[nodiscard]] Result<GenerationDefaults> parse_generation_defaults(std::string_view json,
                                                                   const std::string& place);
/// An absent file states nothing and is no error.
[[nodiscard]] Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& folder);

}  // namespace sangam
