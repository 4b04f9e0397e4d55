// How the front door says no: one table from ErrorCode to HTTP status and OpenAI's type and code.
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// An Error as a client sees it: also which parameter is wrong, and when to come back.
struct ApiError {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string param;      ///< Empty: none, null in JSON.
  Millis retry_after{0};  ///< 0: unknown.
};

[[noreturn]] inline void throw_exception_from_error(const ApiError& error, const boost::source_location&) {
  throw std::runtime_error(error.message);
}

template <class T>
class [[nodiscard]] ApiResult : public boost::system::result<T, ApiError> {
 public:
  using boost::system::result<T, ApiError>::result;
};

/// The row of the table for one code.
struct ErrorForm {
  unsigned status = 500;
  std::string_view type;
  std::string_view code;
  bool retry = false;  ///< Whether trying the same again may help (x-should-retry).
};

[[nodiscard]] ErrorForm form_of(ErrorCode code);
/// {"error":{"message","type","param","code"}}: all four always, `code` a string or null, never a number.
[[nodiscard]] std::string error_json(const ApiError& error);
/// For statuses that have no ErrorCode (405, 413, 431 ...).
[[nodiscard]] std::string error_json(std::string_view message, std::string_view type, std::string_view code);

[[nodiscard]] inline ApiError invalid(std::string param, std::string message) {
  return ApiError{ErrorCode::invalid_input, std::move(message), std::move(param), Millis{0}};
}

}  // namespace sangam
