// Reads the fields of a JSON object by name and type. Null is absent. The first fault is kept, and all
// later reads still answer, so that a parser is a plain list of fields with one check at its end.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/api/errors.hpp"
#include "messages/vocabulary/names.hpp"

namespace sangam {

/// The body as an object, or why it is none.
[[nodiscard]] ApiResult<boost::json::object> parse_object(std::string_view body);

class BodyFields {
 public:
  struct Range {
    double least;
    double most;
  };
  static constexpr Range kAny{-9.0e18, 9.0e18};

  /// `object` outlives the reader. `path` is put before the names in errors ("messages[0].").
  explicit BodyFields(const boost::json::object& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  [[nodiscard]] std::optional<double> number(std::string_view name, Range range = kAny);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, Range range = kAny);
  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  [[nodiscard]] const boost::json::array* array(std::string_view name);
  [[nodiscard]] const boost::json::object* object(std::string_view name);
  /// Null where the field is absent.
  [[nodiscard]] const boost::json::value* find(std::string_view name) const;
  [[nodiscard]] std::vector<TokenId> tokens(std::string_view name);
  [[nodiscard]] std::vector<TokenId> tokens(const boost::json::array& list, std::string_view name);

  void fail(std::string_view name, std::string message);
  [[nodiscard]] const std::optional<ApiError>& fault() const { return fault_; }

 private:
  const boost::json::object& object_;
  std::string path_;
  std::optional<ApiError> fault_;
};

}  // namespace sangam
