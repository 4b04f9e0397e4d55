// A model folder as an OfferedModel: texts, the makers' advice, and the context.
#include <algorithm>
#include <optional>

#include "gateway/gateway.hpp"
#include "gateway/http/open_gateway.hpp"
#include "gateway/models/hf_text.hpp"
#include "gateway/models/model_catalog.hpp"
#include "storage/checkpoint/hf_config.hpp"

namespace sangam {
namespace {

SamplingDefaults advised(const GenerationDefaults& advice, const ModelConfig& config) {
  SamplingDefaults defaults;
  defaults.temperature = advice.temperature.value_or(defaults.temperature);
  if (advice.do_sample == false) defaults.temperature = 0.0;  // The makers say: greedy.
  defaults.top_k = advice.top_k.value_or(defaults.top_k);
  defaults.top_p = advice.top_p.value_or(defaults.top_p);
  defaults.min_p = advice.min_p.value_or(defaults.min_p);
  defaults.repetition_penalty = advice.repetition_penalty.value_or(defaults.repetition_penalty);
  if (advice.max_new_tokens) defaults.max_new_tokens = Tokens(*advice.max_new_tokens);
  defaults.stop_tokens = config.eos_tokens;
  for (const TokenId token : advice.eos_tokens) {
    const auto& known = defaults.stop_tokens;
    if (std::find(known.begin(), known.end(), token) == known.end()) defaults.stop_tokens.push_back(token);
  }
  return defaults;
}

/// The first thing that is wrong with the folder; nothing when the model is complete.
std::optional<Error> fill(OfferedModel& model, const std::filesystem::path& folder) {
  const auto config = read_model_config(folder);
  if (!config) return config.error();
  const auto advice = read_generation_defaults(folder);
  if (!advice) return advice.error();
  auto text = load_model_text(folder);
  if (!text) return text.error();
  if (model.context == Tokens{0}) model.context = Tokens(config->context);
  model.defaults = advised(*advice, *config);
  model.text = std::move(*text);
  return std::nullopt;
}

}  // namespace

OfferedModel read_offered_model(const ServedModel& served) {
  OfferedModel model{.id = served.id,
                     .aliases = served.aliases,
                     .context = served.context,
                     .ttft = served.ttft,
                     .defaults = {},
                     .text = nullptr,
                     .broken = {}};
  if (const auto fault = fill(model, served.folder)) model.broken = fault->context;
  return model;
}

Result<std::unique_ptr<Gateway>> Gateway::start(GatewayOptions options, PostOffice& post) {
  return open_gateway(std::move(options), read_offered_model, post);
}

}  // namespace sangam
