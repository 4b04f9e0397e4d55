// Choosing models and writing bodies.
#include "cli/replay_plan.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "sim/trace/random.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr double kTokenFirst = 10;
constexpr double kTokenEnd = 250;

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

Result<void> check_known(const std::vector<std::string>& apps, const ModelChoices& choices) {
  for (const auto& [app, model] : choices) {
    if (app == "*" || std::find(apps.begin(), apps.end(), app) != apps.end()) continue;
    return make_error(ErrorCode::invalid_input, "--models: the trace has no app '" + app + "'; it has " + listed(apps));
  }
  return {};
}

}  // namespace

Result<ModelChoices> parse_model_choices(const std::vector<std::string>& texts) {
  ModelChoices choices;
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      return make_error(ErrorCode::invalid_input, "--models: '" + text + "' is no APP=MODEL");
    }
    if (!choices.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return make_error(ErrorCode::invalid_input, "--models: '" + text.substr(0, equals) + "' is given twice");
    }
  }
  return choices;
}

Result<std::vector<std::string>> models_of(const std::vector<std::string>& apps, const ModelChoices& choices,
                                           const std::vector<MeshModel>& offered) {
  if (auto known = check_known(apps, choices); !known) return known.error();
  const auto all = choices.find("*");
  std::vector<std::string> models;
  std::size_t turn = 0;
  for (const auto& app : apps) {
    const auto chosen = choices.find(app);
    const bool same_name = std::any_of(offered.begin(), offered.end(), [&](const auto& model) { return model.id == app; });
    if (chosen != choices.end()) {
      models.push_back(chosen->second);
    } else if (all != choices.end()) {
      models.push_back(all->second);
    } else if (same_name) {
      models.push_back(app);
    } else if (!offered.empty()) {
      models.push_back(offered[turn++ % offered.size()].id);
    } else {
      return make_error(ErrorCode::unavailable, "no model for the app '" + app + "'; name one with --models '" + app + "=MODEL' or '*=MODEL'");
    }
  }
  return models;
}

std::string completion_body(const std::string& model, const sim::TraceRequest& request, std::uint64_t seed) {
  sim::Random random(seed);
  std::string body = "{\"model\":" + json::serialize(json::value(model)) + ",\"prompt\":[";
  for (std::int64_t i = 0; i < request.input.count(); ++i) {
    body += (i == 0 ? "" : ",") + std::to_string(std::int64_t(random.uniform(kTokenFirst, kTokenEnd)));
  }
  const auto output = std::to_string(request.output.count());
  return body + "],\"max_tokens\":" + output + ",\"min_tokens\":" + output +
         ",\"ignore_eos\":true,\"temperature\":0,\"logprobs\":0,\"stream\":true}";
}

std::size_t count_too_long(const sim::Trace& trace, const std::vector<std::string>& models, const std::vector<MeshModel>& offered) {
  std::map<std::string, Tokens> contexts;
  for (const auto& model : offered) contexts[model.id] = model.context;
  return std::size_t(std::count_if(trace.requests.begin(), trace.requests.end(), [&](const auto& request) {
    const auto found = contexts.find(models[request.app]);
    return found != contexts.end() && found->second > Tokens(0) && request.input + request.output > found->second;
  }));
}

}  // namespace sangam
