// The words and codes of refusals.
#include "cli/answers.hpp"

#include <boost/json.hpp>

namespace sangam {
namespace {

namespace json = boost::json;

/// The message of an OpenAI error object, or the body as it is.
std::string message_of(const std::string& body) {
  boost::system::error_code failure;
  const auto value = json::parse(body, failure);
  if (failure) return body;
  const auto* message = value.find_pointer("/error/message", failure);
  return message != nullptr && message->is_string() ? std::string(message->get_string()) : body;
}

ErrorCode code_of(int status) {
  if (status == 409) return ErrorCode::internal;  // Live requests stand in the way: asked well, but not done.
  if (status == 503 || status == 429) return ErrorCode::unavailable;
  return status >= 500 ? ErrorCode::internal : ErrorCode::invalid_input;
}

}  // namespace

Error refused(const HttpAnswer& answer) {
  return make_error(code_of(answer.status), "the mesh answered " + std::to_string(answer.status) + ": " + message_of(answer.body));
}

Error no_mesh(const Error& error) {
  return make_error(error.code, error.context + "; start a mesh with ./run, or name another with --url");
}

}  // namespace sangam
