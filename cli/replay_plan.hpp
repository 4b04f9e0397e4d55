// What a replay sends: which model answers for which app, and a body for each request of the trace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/report/record.hpp"
#include "sim/trace/trace.hpp"

namespace sangam {

/// A model that the mesh offers.
struct MeshModel {
  std::string id;
  Tokens context{0};  ///< Prompt and answer together; 0: not known.
};

/// "app=model" of the command line. `*` stands for all apps that are not named.
using ModelChoices = std::map<std::string, std::string>;
[[nodiscard]] Result<ModelChoices> parse_model_choices(const std::vector<std::string>& texts);

/// The model of each app: as chosen, else the one that is called as the app is, else the mesh's models in turn.
/// Refuses choices for apps that the trace does not have, and apps for which there is no model.
[[nodiscard]] Result<std::vector<std::string>> models_of(const std::vector<std::string>& apps, const ModelChoices& choices,
                                                         const std::vector<MeshModel>& offered);

/// JSON of `POST /v1/completions`: a prompt of exactly `input` token ids, an answer of exactly `output` tokens, streamed
/// with log probabilities, which tell how many tokens are in a chunk. The ids lie in [10, 250), where the vocabularies
/// in use have ordinary tokens, and are drawn from `seed`, so that no prompt is found in a prefix cache.
[[nodiscard]] std::string completion_body(const std::string& model, const sim::TraceRequest& request, std::uint64_t seed);

/// How many requests do not fit the context of their model.
[[nodiscard]] std::size_t count_too_long(const sim::Trace& trace, const std::vector<std::string>& models,
                                         const std::vector<MeshModel>& offered);

}  // namespace sangam
