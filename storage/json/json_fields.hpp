// Reads typed fields from a JSON object. Every refusal names the place, the field, the value and the limit.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Parses `text`, which must be one JSON object. `place` is what errors call it.
[[nodiscard]] Result<boost::json::object> parse_json_object(std::string_view text, const std::string& place);

/// Reads a file of at most `size_max` bytes that holds one JSON object.
[[nodiscard]] Result<boost::json::object> read_json_object(const std::filesystem::path& path,
                                                           std::size_t size_max);

/// Bounds of a number, both included.
template <class Number>
struct Limits {
  Number least;
  Number most;
};

/// Null counts as absent throughout. The first wrong field is remembered and what follows returns defaults,
/// so that a reader states its fields one under the other and looks at `error()` once, at the end.
class JsonFields {
 public:
  /// Neither is copied; both must outlive the reader.
  JsonFields(const boost::json::object& object, const std::string& place) : object_(object), place_(place) {}

  [[nodiscard]] bool has(std::string_view field) const;  ///< Present and not null.
  [[nodiscard]] bool is_null(std::string_view field) const;

  std::int64_t integer(std::string_view field, Limits<std::int64_t> limits);
  std::optional<std::int64_t> maybe_integer(std::string_view field, Limits<std::int64_t> limits);
  double number(std::string_view field, Limits<double> limits);
  std::optional<double> maybe_number(std::string_view field, Limits<double> limits);
  std::string text(std::string_view field);
  std::optional<std::string> maybe_text(std::string_view field);
  std::optional<bool> maybe_flag(std::string_view field);
  /// One integer or a list of them.
  std::vector<std::int64_t> integers(std::string_view field, Limits<std::int64_t> limits);
  const boost::json::object* maybe_object(std::string_view field);
  const boost::json::array* maybe_array(std::string_view field);

  /// Remembers a refusal of the caller's own, unless there is one already.
  void refuse(std::string_view field, std::string_view why);
  /// Takes over the refusal of a reader of an inner object.
  void adopt(const Error& error) {
    if (!error_) error_ = error;
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const boost::json::value* find(std::string_view field) const;
  std::optional<std::int64_t> integer_of(const boost::json::value& value, std::string_view field,
                                         Limits<std::int64_t> limits);

  const boost::json::object& object_;
  const std::string& place_;
  std::optional<Error> error_;
};

}  // namespace sangam
