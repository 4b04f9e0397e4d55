// Profiles from and to JSON.
#include "cli/profile/profile_file.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <set>

#include "storage/json/json_fields.hpp"

namespace sangam {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr std::size_t kFileMax = 16 << 20;
constexpr std::size_t kSamplesMax = 10'000;
constexpr Limits<double> kMicros{0.0, 3.6e9};  // An hour.
constexpr Limits<double> kCount{0.0, 1e12};
constexpr Limits<std::int64_t> kBytes{0, std::int64_t(1) << 50};

struct SampleField {
  std::string_view name;
  double WorkSample::* value;
};
constexpr std::array<SampleField, 5> kSampleFields{{
    {"steps", &WorkSample::steps},
    {"prompts", &WorkSample::prompts},
    {"prefill_tokens", &WorkSample::prefill_tokens},
    {"output_tokens", &WorkSample::output_tokens},
    {"context_tokens", &WorkSample::context_tokens},
}};

/// A number, or an object with it and its spread.
FittedCost cost_of(const json::object& costs, std::string_view field, const std::string& place, JsonFields& outer) {
  const json::value* value = costs.if_contains(field);
  FittedCost cost;
  if (value != nullptr && value->is_object()) {
    const std::string here = place + "." + std::string(field);
    JsonFields fields(value->get_object(), here);
    cost.value = fields.number("value", kMicros);
    cost.low = fields.maybe_number("low", kMicros).value_or(cost.value);
    cost.high = fields.maybe_number("high", kMicros).value_or(cost.value);
    if (fields.error()) outer.adopt(*fields.error());
    return cost;
  }
  JsonFields fields(costs, place);
  cost.value = cost.low = cost.high = fields.number(field, kMicros);
  if (fields.error()) outer.adopt(*fields.error());
  return cost;
}

std::vector<WorkSample> samples_of(JsonFields& outer, const std::string& place) {
  std::vector<WorkSample> samples;
  const json::array* list = outer.maybe_array("samples");
  if (list == nullptr) return samples;
  if (list->size() > kSamplesMax) outer.refuse("samples", "has more than 10000 entries; measure anew");
  for (std::size_t i = 0; i < list->size() && !outer.error(); ++i) {
    const std::string here = place + ": samples[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) {
      outer.adopt(make_error(ErrorCode::invalid_input, here + " is no object"));
      break;
    }
    JsonFields fields((*list)[i].get_object(), here);
    WorkSample sample;
    for (const SampleField& field : kSampleFields) sample.*field.value = fields.number(field.name, kCount);
    sample.seconds = fields.number("busy_us", {1e-3, 3.6e9}) / 1e6;
    samples.push_back(sample);
    if (fields.error()) outer.adopt(*fields.error());
  }
  return samples;
}

json::object sample_object(const WorkSample& sample) {
  json::object object;
  for (const SampleField& field : kSampleFields) object[field.name] = sample.*field.value;
  object["busy_us"] = std::round(sample.seconds * 1e6);
  return object;
}

Error refused_file(const Error& error) {
  return make_error(error.code, error.context + "; mend the file, or measure anew with `sangam profile`");
}

}  // namespace

ModelPrior Profile::prior() const {
  ModelPrior prior;
  prior.weights = weights;
  prior.kv_per_token = kv_per_token;
  prior.flop_per_token = double(weights.count());  // Weights of two bytes, each multiplied and added once a token.
  prior.step_fixed = costs.step.value / 1e6;
  prior.prompt_fixed = costs.prompt.value / 1e6;
  prior.prompt_token = costs.prompt_token.value / 1e6;
  prior.sequence = costs.sequence.value / 1e6;
  prior.context_token = costs.context_token.value / 1e6;
  prior.samples = samples;
  return prior;
}

sim::ModelSpec Profile::spec() const {
  sim::ModelSpec spec;
  spec.id = model;
  spec.devices = devices;
  spec.weights = weights;
  spec.kv_per_token = kv_per_token;
  set_costs(spec, {costs.step.value + between_steps_us, costs.prompt.value, costs.prompt_token.value, costs.sequence.value,
                   costs.context_token.value, true});
  return spec;
}

void set_costs(sim::ModelSpec& spec, const ModelCosts& costs) {
  spec.decode_fixed = costs.step;
  spec.prefill_fixed = costs.step + costs.prompt + costs.sequence;
  spec.prefill_per_token = costs.prompt_token;
  spec.decode_per_sequence = costs.sequence;
  spec.decode_per_context = costs.context_token;
}

fs::path profile_path(const fs::path& folder, const ModelId& model) {
  std::string name;
  for (const char c : model.text()) name += c == '/' ? std::string("--") : std::string(1, c);
  return folder / (name + ".json");
}

std::string profile_json(const Profile& profile) {
  json::object costs;
  for (const CostName& name : kCostNames) {
    const FittedCost& cost = profile.costs.*name.cost;
    costs[name.field] = json::object{{"value", cost.value}, {"low", cost.low}, {"high", cost.high}};
  }
  json::array samples;
  for (const WorkSample& sample : profile.samples) samples.push_back(sample_object(sample));
  return json::serialize(json::object{{"model", profile.model.text()},
                                      {"measured", profile.measured},
                                      {"devices", profile.devices},
                                      {"weights_bytes", profile.weights.count()},
                                      {"kv_bytes_per_token", profile.kv_per_token.count()},
                                      {"between_steps_us", profile.between_steps_us},
                                      {"request_us", profile.request_us},
                                      {"costs", std::move(costs)},
                                      {"r2", profile.costs.r2},
                                      {"error_median", profile.costs.error_median},
                                      {"samples", std::move(samples)}});
}

Result<Profile> read_profile(const fs::path& file) {
  const std::string place = file.string();
  const auto object = read_json_object(file, kFileMax);
  if (!object) return refused_file(object.error());
  JsonFields fields(*object, place);
  Profile profile;
  profile.model = ModelId(fields.text("model"));
  profile.measured = fields.maybe_text("measured").value_or("");
  profile.devices = fields.integer("devices", {1, 100'000});
  profile.weights = Bytes(fields.integer("weights_bytes", kBytes));
  profile.kv_per_token = Bytes(fields.integer("kv_bytes_per_token", kBytes));
  profile.between_steps_us = fields.maybe_number("between_steps_us", kMicros).value_or(0.0);
  profile.request_us = fields.maybe_number("request_us", kMicros).value_or(0.0);
  const std::string costs_place = place + ": costs";
  if (const json::object* costs = fields.maybe_object("costs")) {
    for (const CostName& name : kCostNames) profile.costs.*name.cost = cost_of(*costs, name.field, costs_place, fields);
    if (profile.costs.step.value <= 0.0) fields.refuse("costs", "'step_us' must be above 0: no step takes no time");
  } else {
    fields.refuse("costs", "is missing");
  }
  profile.costs.r2 = fields.maybe_number("r2", {-1e9, 1.0}).value_or(0.0);
  profile.costs.error_median = fields.maybe_number("error_median", {0.0, 1e9}).value_or(0.0);
  profile.samples = samples_of(fields, place);
  if (fields.error()) return refused_file(*fields.error());
  return profile;
}

Result<std::vector<Profile>> read_profiles(const fs::path& place) {
  std::error_code failure;
  std::vector<fs::path> files;
  if (fs::is_directory(place, failure)) {
    for (const auto& entry : fs::directory_iterator(place, failure)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      return make_error(ErrorCode::invalid_input,
                        place.string() + ": no profile (*.json) is there; measure with `sangam profile MODEL --store " +
                            place.string() + "`");
    }
  } else {
    files.push_back(place);
  }
  std::vector<Profile> profiles;
  std::set<ModelId> seen;
  for (const fs::path& file : files) {
    auto profile = read_profile(file);
    if (!profile) return profile.error();
    if (!seen.insert(profile->model).second) {
      return make_error(ErrorCode::invalid_input, file.string() + ": model: '" + profile->model.text() +
                                                      "' has a profile already; keep one file for each model");
    }
    profiles.push_back(std::move(*profile));
  }
  return profiles;
}

}  // namespace sangam
