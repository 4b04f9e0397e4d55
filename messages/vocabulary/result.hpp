// How the world says no: an Error with a code that callers react to and a context that holds the numbers.
#pragma once

#include <boost/describe/enum.hpp>
#include <boost/system/result.hpp>
#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace sangam {

/// Each code exists because some caller reacts to it in its own way; one table maps them to HTTP statuses.
enum class ErrorCode : std::uint16_t {
  none,
  invalid_input,      ///< The request, file or configuration is wrong; repeating it cannot help.
  not_found,          ///< No such model, actor, file or route.
  context_length,     ///< Prompt and output do not fit the model's context.
  queue_full,         ///< An admission limit is reached; retry after the hint.
  cannot_be_on_time,  ///< No instance can meet the deadline; retry after the hint.
  expired,            ///< The deadline passed before execution began.
  cancelled,          ///< The client left or asked to stop.
  unavailable,        ///< A part that is needed is away (worker, queue, scheduler); retry.
  exhausted,          ///< Memory, disk or another resource is full.
  corrupt,            ///< Stored or received bytes are damaged, or of a version that we do not know.
  unauthorized,       ///< No key, or a key that is not known.
  internal,           ///< A promise of ours was broken.
};
BOOST_DESCRIBE_ENUM(ErrorCode, none, invalid_input, not_found, context_length, queue_full, cannot_be_on_time,
                    expired, cancelled, unavailable, exhausted, corrupt, unauthorized, internal)

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string context;  ///< Where, which limit, which numbers, and what to do about it.
};

/// What `Result::value()` throws where the caller has not looked; tests and `main` may rely on it.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::runtime_error(error.context);
}

template <class T>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
 public:
  using boost::system::result<T, Error>::result;
};

/// For logs and failing tests; what a value looks like is its own affair.
template <class T>
std::ostream& operator<<(std::ostream& out, const Result<T>& result) {
  return result ? out << "a value" : out << "error: " << result.error().context;
}

[[nodiscard]] inline Error make_error(ErrorCode code, std::string context) {
  return Error{code, std::move(context)};
}

}  // namespace sangam
