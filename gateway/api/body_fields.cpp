// Typed access to a JSON object's fields.
#include "gateway/api/body_fields.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <limits>

namespace sangam {
namespace {

namespace json = boost::json;

/// JSON schemas of tools nest deeper than the library's default of 32.
constexpr std::size_t kDepthMax = 128;

std::string shown(double number) {
  json::value value = number;
  if (std::floor(number) == number && std::abs(number) < 9.0e15) value = std::int64_t(number);
  return json::serialize(value);
}

std::optional<double> as_number(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return double(value.get_int64());
  if (value.is_uint64()) return double(value.get_uint64());
  return std::nullopt;
}

std::string_view kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return "null";
    case json::kind::bool_: return "a boolean";
    case json::kind::string: return "a string";
    case json::kind::array: return "a list";
    case json::kind::object: return "an object";
    default: return "a number";
  }
}

std::string wrong_type(std::string_view wanted, const json::value& value) {
  return "expected " + std::string(wanted) + ", got " + std::string(kind_of(value));
}

}  // namespace

ApiResult<json::object> parse_object(std::string_view body) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::error_code error;
  json::value value;
  try {
    value = json::parse(body, error, {}, options);
  } catch (const std::exception& e) {
    return invalid("", std::string("The body could not be read as JSON: ") + e.what());
  }
  if (error)
    return invalid("", "The body is not valid JSON: " + error.message() + ". Send one JSON object in UTF-8.");
  if (!value.is_object())
    return invalid("", "The body must be a JSON object, not " + std::string(kind_of(value)) + ".");
  return std::move(value.get_object());
}

const json::value* BodyFields::find(std::string_view name) const {
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<double> BodyFields::number(std::string_view name, Range range) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = as_number(*value);
  if (!number) {
    fail(name, wrong_type("a number", *value));
    return std::nullopt;
  }
  if (!(*number >= range.least && *number <= range.most)) {
    fail(name, shown(*number) + " is outside of " + shown(range.least) + " to " + shown(range.most));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> BodyFields::integer(std::string_view name, Range range) {
  const auto value = number(name, range);
  if (!value) return std::nullopt;
  const json::value* exact = find(name);  // A double holds 53 bits only; seeds use all 64.
  if (std::floor(*value) != *value || (exact->is_double() && std::abs(*value) > 9.0e18)) {
    fail(name, "expected a whole number, got " + shown(*value));
    return std::nullopt;
  }
  if (exact->is_int64()) return exact->get_int64();
  if (exact->is_uint64()) return std::int64_t(exact->get_uint64());
  return std::int64_t(*value);
}

std::optional<bool> BodyFields::boolean(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  fail(name, wrong_type("a boolean", *value));
  return std::nullopt;
}

std::optional<std::string> BodyFields::text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  fail(name, wrong_type("a string", *value));
  return std::nullopt;
}

const json::array* BodyFields::array(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return &value->get_array();
  fail(name, wrong_type("a list", *value));
  return nullptr;
}

const json::object* BodyFields::object(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return &value->get_object();
  fail(name, wrong_type("an object", *value));
  return nullptr;
}

std::vector<TokenId> BodyFields::tokens(std::string_view name) {
  const json::array* list = array(name);
  return list == nullptr ? std::vector<TokenId>{} : tokens(*list, name);
}

std::vector<TokenId> BodyFields::tokens(const json::array& list, std::string_view name) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const json::value& item : list) {
    const auto id = as_number(item);
    if (!id || item.is_double() || *id < 0 || *id > double(std::numeric_limits<TokenId>::max())) {
      fail(name, "expected token ids (whole numbers from 0), got " + json::serialize(item));
      return {};
    }
    ids.push_back(TokenId(*id));
  }
  return ids;
}

void BodyFields::fail(std::string_view name, std::string message) {
  if (fault_) return;
  const std::string param = path_ + std::string(name);
  fault_ = invalid(param, "Invalid '" + param + "': " + std::move(message) + ".");
}

}  // namespace sangam
