// `sangam ask`: one prompt to a running mesh, with the answer printed as it is made.
#pragma once

#include <string>

#include "messages/vocabulary/result.hpp"

namespace sangam {

struct AskOptions {
  std::string url = "http://127.0.0.1:8080";
  std::string model;
  std::string prompt;
  std::int64_t max_tokens = 0;  ///< 0: as many as the model's context allows.
  double temperature = 0.0;
};

/// Prints the answer to standard output.
[[nodiscard]] Result<void> ask(const AskOptions& options);
/// Prints each model's name and whether it is ready.
[[nodiscard]] Result<void> list_models(const std::string& url);
/// Succeeds when `url`, such as http://127.0.0.1:8080/readyz, answers 200 within two seconds.
[[nodiscard]] Result<void> check_health(const std::string& url);

}  // namespace sangam
