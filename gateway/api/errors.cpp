// The table of errors and their JSON form.
#include "gateway/api/errors.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sangam {
namespace {

namespace json = boost::json;

json::value text_or_null(std::string_view text) {
  return text.empty() ? json::value() : json::value(text);
}

std::string form(std::string_view message, std::string_view type, std::string_view param,
                 std::string_view code) {
  json::object error{
      {"message", message}, {"type", type}, {"param", text_or_null(param)}, {"code", text_or_null(code)}};
  return json::serialize(json::object{{"error", std::move(error)}});
}

}  // namespace

ErrorForm form_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input: return {400, "invalid_request_error", "invalid_value", false};
    case ErrorCode::context_length: return {400, "invalid_request_error", "context_length_exceeded", false};
    case ErrorCode::unauthorized: return {401, "invalid_request_error", "invalid_api_key", false};
    case ErrorCode::not_found: return {404, "invalid_request_error", "model_not_found", false};
    case ErrorCode::queue_full: return {429, "rate_limit_error", "rate_limit_exceeded", true};
    case ErrorCode::cancelled: return {499, "cancelled_error", "cancelled", false};
    case ErrorCode::cannot_be_on_time: return {503, "overloaded_error", "deadline_unattainable", true};
    case ErrorCode::unavailable: return {503, "service_unavailable_error", "service_unavailable", true};
    case ErrorCode::exhausted: return {503, "overloaded_error", "resources_exhausted", true};
    // What has expired would expire again: the client's own retries only add load.
    case ErrorCode::expired: return {504, "timeout_error", "deadline_expired", false};
    case ErrorCode::corrupt: return {503, "service_unavailable_error", "model_unusable", false};
    case ErrorCode::none:
    case ErrorCode::internal: break;
  }
  return {500, "server_error", "internal_error", false};
}

std::string error_json(const ApiError& error) {
  const ErrorForm row = form_of(error.code);
  return form(error.message, row.type, error.param, row.code);
}

std::string error_json(std::string_view message, std::string_view type, std::string_view code) {
  return form(message, type, "", code);
}

}  // namespace sangam
