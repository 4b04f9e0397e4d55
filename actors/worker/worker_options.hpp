// How a worker is set up, as read from the configuration.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

struct WorkerOptions {
  ActorName name;
  Incarnation incarnation{1};
  std::vector<std::pair<ModelId, std::string>> models;  ///< And their folders.
  Bytes pool_bytes{std::int64_t{1} << 30};              ///< Weights and KV together; reserved at the start.
  Bytes page_bytes{256 * 1024};
  std::int64_t running_max = 32;   ///< Sequences that hold pages at once, over all models.
  std::int64_t waiting_max = 256;  ///< Runs taken beyond these; more are refused.
  Tokens step_tokens{512};         ///< Rows of one step.
  /// While several models have work, a step takes no more of a prompt than is done in this.
  Millis shared_step_max{50};
  std::string prefix_cache = "tenant";  ///< Who may find whose prompts: "nobody", "tenant" or "everyone".
  int threads = 0;                 ///< 0: one for each hardware thread.
  std::string isa = "best";        ///< "best", "avx512", "avx2" or "portable".
  bool preload = true;             ///< Its models are made active at the start, in their order, as far as they fit.
  Bytes host_bytes{std::int64_t{1} << 30};  ///< For weights of models that sleep warm.
  std::string holder;  ///< The socket where its memory is kept beyond its death; empty: nowhere.
  /// Workers hand runs over where both keep their memory with one holder.
  WorkerRole role = WorkerRole::mixed;
  Millis status_every{500};
};

}  // namespace sangam
