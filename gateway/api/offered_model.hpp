// A model as the API sees it: its names, its context, its texts, and what fills the gaps of a request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/api/model_text.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// From generation_config.json; what is absent there is OpenAI's default.
struct SamplingDefaults {
  double temperature = 1.0;
  std::int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  std::optional<Tokens> max_new_tokens;  ///< Chat without max_tokens ends here, if the context has room.
  std::vector<TokenId> stop_tokens;
};

struct OfferedModel {
  ModelId id;
  std::vector<std::string> aliases;
  Tokens context{0};
  Millis ttft{0};  ///< The promise for requests that name none; 0: none.
  SamplingDefaults defaults;
  std::shared_ptr<const ModelText> text;  ///< Null: `broken` says why, and the model answers with it.
  std::string broken;
};

}  // namespace sangam
