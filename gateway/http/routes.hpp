// Which paths there are, and which methods they take.
#pragma once

#include <string>
#include <string_view>

#include "messages/vocabulary/lifecycle.hpp"

namespace sangam {

enum class Route {
  unknown,
  root,
  chat,
  completions,
  quote,
  models,
  model,
  tokenize,
  detokenize,
  health,
  ping,
  live,
  ready,
  version,
  metrics,
  load,
  instances,
  memory,
  snapshot,
  is_sleeping,
  command
};

struct RouteMatch {
  Route route = Route::unknown;
  std::string argument;      ///< Route::model: its name, which may contain slashes.
  std::string_view handler;  ///< For metrics: the pattern, never the path itself.
  std::string_view allow;    ///< The methods, as the header Allow lists them.
  bool method_allowed = true;
  bool open = false;   ///< Probes need no key.
  bool admin = false;  ///< For operators only.
  CommandVerb verb = CommandVerb::wake;  ///< Of Route::command.
};

/// The query is ignored, %XX is decoded, a trailing slash does not matter.
[[nodiscard]] RouteMatch route_of(std::string_view method, std::string_view target);

}  // namespace sangam
