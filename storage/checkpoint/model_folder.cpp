// Joins what config.json, generation_config.json and the weights each say.
#include "storage/checkpoint/model_folder.hpp"

#include <algorithm>
#include <utility>

#include "storage/checkpoint/tensor_check.hpp"

namespace sangam {

Result<ModelFolder> open_model(const std::filesystem::path& folder) {
  auto config = read_model_config(folder);
  if (!config) return config.error();
  auto generation = read_generation_defaults(folder);
  if (!generation) return generation.error();
  auto checkpoint = Checkpoint::open(folder);
  if (!checkpoint) return checkpoint.error();
  auto report = check_tensors(*config, *checkpoint);
  if (!report) return report.error();
  config->tied_embeddings = report->tied_embeddings;
  for (const TokenId token : generation->eos_tokens)
    if (std::ranges::find(config->eos_tokens, token) == config->eos_tokens.end())
      config->eos_tokens.push_back(token);
  return ModelFolder{std::move(*config), std::move(*generation), std::move(*checkpoint),
                     std::move(report->warnings)};
}

}  // namespace sangam
