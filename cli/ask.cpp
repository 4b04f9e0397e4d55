// The commands that are clients of a running mesh.
#include "cli/ask.hpp"

#include <boost/json.hpp>
#include <iostream>

#include "cli/answers.hpp"
#include "cli/event_stream.hpp"
#include "cli/http_client.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

/// Prints the text of one chunk; an error inside the stream is kept for the end.
void print_chunk(std::string_view data, std::string& failure) {
  if (data == "[DONE]") return;
  const auto chunk = json::parse(data);
  boost::system::error_code absent;
  if (const auto* message = chunk.find_pointer("/error/message", absent)) {
    failure = message->get_string();
    return;
  }
  const auto* content = chunk.find_pointer("/choices/0/delta/content", absent);
  if (content != nullptr && content->is_string()) std::cout << std::string_view(content->get_string()) << std::flush;
}

}  // namespace

Result<void> ask(const AskOptions& options) {
  const auto base = parse_http_base(options.url);
  if (!base) return base.error();
  json::object body = {{"model", options.model},
                       {"messages", json::array{json::object{{"role", "user"}, {"content", options.prompt}}}},
                       {"temperature", options.temperature},
                       {"stream", true}};
  if (options.max_tokens > 0) body["max_tokens"] = options.max_tokens;
  EventStream events;
  std::string failure;
  const HttpCall request{"POST", "/v1/chat/completions", json::serialize(body), Millis(600'000)};
  const auto answer = http_call(*base, request, [&](std::string_view piece) {
    events.feed(piece, [&](std::string_view data) { print_chunk(data, failure); });
  });
  if (!answer) return no_mesh(answer.error());
  if (answer->status != 200) return refused(*answer);
  if (!failure.empty()) return make_error(ErrorCode::internal, failure);
  std::cout << '\n';
  return {};
}

Result<void> list_models(const std::string& url) {
  const auto base = parse_http_base(url);
  if (!base) return base.error();
  const auto answer = http_call(*base, {"GET", "/v1/models", {}, Millis(5'000)});
  if (!answer) return no_mesh(answer.error());
  if (answer->status != 200) return refused(*answer);
  const json::value models = json::parse(answer->body);
  for (const auto& model : models.at("data").as_array()) {
    std::cout << std::string_view(model.at("id").as_string()) << '\n';
  }
  return {};
}

Result<void> check_health(const std::string& url) {
  constexpr std::string_view scheme = "http://";
  const auto path = url.find('/', url.starts_with(scheme) ? scheme.size() : 0);
  const auto base = parse_http_base(url.substr(0, path));
  if (!base) return base.error();
  const std::string target = path == std::string::npos ? "/readyz" : url.substr(path);
  const auto answer = http_call(*base, {"GET", target, {}, Millis(2'000)});
  if (!answer) return answer.error();
  if (answer->status != 200) return make_error(ErrorCode::unavailable, refused(*answer).context);
  return {};
}

}  // namespace sangam
