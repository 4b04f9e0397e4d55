// `rope_scaling` with `type` (2023) or `rope_type` (2024), or `rope_parameters` with theta inside (2025).
#include "storage/checkpoint/rope_config.hpp"

#include <boost/json.hpp>
#include <cmath>
#include <optional>

namespace sangam {
namespace {

constexpr Limits<double> kThetaLimits = {1.0, 1e12};
constexpr Limits<double> kFactorLimits = {1.0, 1e6};
constexpr Limits<double> kPositive = {1e-6, 1e6};
constexpr Limits<std::int64_t> kContextLimits = {1, std::int64_t{1} << 27};

/// YaRN's temperature, 0.1 m ln(s) + 1 (Peng et al., 2023, section 3.4, with DeepSeek's weight m).
double attention_scale(double factor, double weight) {
  return 0.1 * weight * std::log(factor) + 1.0;
}

void read_llama3(JsonFields& rope, RopeScaling& out) {
  out.factor = rope.number("factor", kFactorLimits);
  out.low_freq_factor = rope.number("low_freq_factor", kPositive);
  out.high_freq_factor = rope.number("high_freq_factor", kPositive);
  if (out.high_freq_factor <= out.low_freq_factor)
    rope.refuse("high_freq_factor", "must exceed low_freq_factor");
}

void read_yarn(JsonFields& rope, std::int64_t context, RopeScaling& out) {
  const double implied = static_cast<double>(context) / static_cast<double>(out.original_context);
  if (!rope.has("factor") && implied < 1.0)
    rope.refuse("original_max_position_embeddings",
                "exceeds max_position_embeddings, and no factor is stated");
  out.factor = rope.maybe_number("factor", kFactorLimits).value_or(implied);
  // 0 stands for the default here, too.
  const auto or_default = [&](const char* field, double value) {
    const double stated = rope.maybe_number(field, {0.0, 1e6}).value_or(0.0);
    return stated > 0.0 ? stated : value;
  };
  out.beta_fast = or_default("beta_fast", 32.0);
  out.beta_slow = or_default("beta_slow", 1.0);
  if (out.beta_fast < out.beta_slow) rope.refuse("beta_fast", "must not be below beta_slow");
  out.attention_factor = rope.maybe_number("attention_factor", kPositive).value_or(0.0);
  const double weight = or_default("mscale", 0.0);
  const double weight_all = or_default("mscale_all_dim", 0.0);
  if (out.attention_factor == 0.0 && weight > 0.0 && weight_all > 0.0)
    out.attention_factor = attention_scale(out.factor, weight) / attention_scale(out.factor, weight_all);
  if (!rope.maybe_flag("truncate").value_or(true)) rope.refuse("truncate", "only true is supported");
}

/// Where it is not stated, the context itself.
std::int64_t original_context(JsonFields& fields, JsonFields& rope, std::int64_t context) {
  if (const auto outside = fields.maybe_integer("original_max_position_embeddings", kContextLimits))
    return *outside;
  return rope.maybe_integer("original_max_position_embeddings", kContextLimits).value_or(context);
}

void refuse_partial(JsonFields& fields) {
  if (fields.maybe_number("partial_rotary_factor", {0.0, 1.0}).value_or(1.0) != 1.0)
    fields.refuse("partial_rotary_factor", "only 1.0 (all of a head rotates) is supported");
}

}  // namespace

void read_rope(JsonFields& fields, const std::string& place, ModelConfig& config) {
  config.rope_theta = fields.maybe_number("rope_theta", kThetaLimits).value_or(10000.0);
  refuse_partial(fields);
  const char* spelling = "rope_scaling";
  const auto* object = fields.maybe_object(spelling);
  if (!object || object->empty()) object = fields.maybe_object(spelling = "rope_parameters");
  if (!object || object->empty()) return;
  const std::string rope_place = place + ": " + spelling;
  JsonFields rope(*object, rope_place);
  RopeScaling& out = config.rope;
  config.rope_theta = rope.maybe_number("rope_theta", kThetaLimits).value_or(config.rope_theta);
  refuse_partial(rope);
  for (const char* layers : {"full_attention", "sliding_attention"})
    if (rope.has(layers)) rope.refuse(layers, "rotary parameters that differ by layer are not supported");
  const bool old_spelling = !rope.has("rope_type");
  const std::string kind = rope.maybe_text(old_spelling ? "type" : "rope_type").value_or("default");
  if (kind == "linear") {
    out.kind = RopeScaling::Kind::linear;
    out.factor = rope.number("factor", kFactorLimits);
  } else if (kind == "llama3" || kind == "yarn") {
    out.kind = kind == "yarn" ? RopeScaling::Kind::yarn : RopeScaling::Kind::llama3;
    out.original_context = original_context(fields, rope, config.context);
    kind == "yarn" ? read_yarn(rope, config.context, out) : read_llama3(rope, out);
  } else if (kind != "default") {
    rope.refuse(old_spelling ? "type" : "rope_type", "supported are default, linear, llama3, yarn");
  }
  if (rope.error()) fields.adopt(*rope.error());
}

}  // namespace sangam
