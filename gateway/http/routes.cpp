// The table of routes.
#include "gateway/http/routes.hpp"

#include <array>
#include <charconv>

namespace sangam {
namespace {

struct Row {
  std::string_view path;
  Route route;
  std::string_view allow;
  bool open;
  bool admin = false;
  CommandVerb verb = CommandVerb::wake;
};

constexpr std::string_view kRead = "GET, HEAD, OPTIONS";
constexpr std::string_view kWrite = "POST, OPTIONS";
constexpr std::array kRows{
    Row{"/", Route::root, kRead, false},
    Row{"/v1/chat/completions", Route::chat, kWrite, false},
    Row{"/v1/completions", Route::completions, kWrite, false},
    Row{"/v1/deadline/quote", Route::quote, kWrite, false},
    Row{"/v1/models", Route::models, kRead, false},
    Row{"/tokenize", Route::tokenize, kWrite, false},
    Row{"/detokenize", Route::detokenize, kWrite, false},
    Row{"/health", Route::health, kRead, true},
    Row{"/v1/health", Route::health, kRead, true},
    Row{"/ping", Route::ping, "GET, POST, HEAD, OPTIONS", true},
    Row{"/livez", Route::live, kRead, true},
    Row{"/readyz", Route::ready, kRead, true},
    Row{"/version", Route::version, kRead, false},
    Row{"/metrics", Route::metrics, kRead, false},
    Row{"/load", Route::load, kRead, false},
    Row{"/admin/models", Route::instances, kRead, false, true},
    Row{"/admin/memory", Route::memory, kRead, false, true},
    Row{"/admin/snapshot", Route::snapshot, kRead, false, true},
    Row{"/admin/load", Route::command, kWrite, false, true, CommandVerb::load},
    Row{"/admin/wake", Route::command, kWrite, false, true, CommandVerb::wake},
    Row{"/admin/sleep", Route::command, kWrite, false, true, CommandVerb::sleep},
    Row{"/admin/unload", Route::command, kWrite, false, true, CommandVerb::unload},
    Row{"/admin/drain", Route::command, kWrite, false, true, CommandVerb::drain},
    Row{"/admin/fork", Route::command, kWrite, false, true, CommandVerb::fork},
    Row{"/sleep", Route::command, kWrite, false, true, CommandVerb::sleep},
    Row{"/wake_up", Route::command, kWrite, false, true, CommandVerb::wake},
    Row{"/is_sleeping", Route::is_sleeping, kRead, false, true},
};
constexpr std::string_view kModelPrefix = "/v1/models/";

/// A broken escape stands for itself.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escape = text[i] == '%' && i + 3 <= text.size();
    const char* digits = text.data() + i + 1;
    if (escape && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      out += char(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool contains_method(std::string_view allow, std::string_view method) {
  for (std::size_t at = allow.find(method); at != allow.npos; at = allow.find(method, at + 1)) {
    const std::size_t end = at + method.size();
    const bool whole = (at == 0 || allow[at - 1] == ' ') && (end == allow.size() || allow[end] == ',');
    if (whole) return true;
  }
  return false;
}

RouteMatch matched(Route route, std::string_view handler, std::string_view allow, std::string_view method) {
  return {.route = route,
          .argument = {},
          .handler = handler,
          .allow = allow,
          .method_allowed = contains_method(allow, method)};
}

}  // namespace

RouteMatch route_of(std::string_view method, std::string_view target) {
  std::string path = decoded(target.substr(0, target.find_first_of("?#")));
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  for (const Row& row : kRows) {
    if (row.path != path) continue;
    RouteMatch match = matched(row.route, row.path, row.allow, method);
    match.open = row.open;
    match.admin = row.admin;
    match.verb = row.verb;
    return match;
  }
  if (!path.starts_with(kModelPrefix)) return {.argument = path, .handler = "other", .allow = {}};
  RouteMatch match = matched(Route::model, "/v1/models/{model}", kRead, method);
  match.argument = path.substr(kModelPrefix.size());
  return match;
}

}  // namespace sangam
