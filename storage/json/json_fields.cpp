// Boost.JSON behind JsonFields: parsing with bounds, and the wording of refusals.
#include "storage/json/json_fields.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "storage/file/mapped_file.hpp"

namespace sangam {
namespace json = boost::json;
namespace {

constexpr std::size_t kShownMax = 60;  ///< Characters of a wrong value that an error repeats.

std::string shown(const json::value& value) {
  std::string text = json::serialize(value);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

}  // namespace

Result<json::object> parse_json_object(std::string_view text, const std::string& place) {
  if (is_lfs_pointer(text))
    return make_error(ErrorCode::corrupt, place + ": is a Git LFS pointer, not the file; run `git lfs pull`");
  json::error_code fault;
  json::stream_parser parser;
  const std::size_t used = parser.write_some(text.data(), text.size(), fault);
  if (!fault && text.find_first_not_of(" \t\r\n", used) != std::string_view::npos)
    fault = json::error::extra_data;
  if (!fault) parser.finish(fault);
  if (fault)
    return make_error(ErrorCode::corrupt,
                      fmt::format("{}: not valid JSON near byte {} of {}: {}; write the file again", place,
                                  used, text.size(), fault.message()));
  json::value value = parser.release();
  if (!value.is_object())
    return make_error(ErrorCode::corrupt,
                      fmt::format("{}: holds {}, not a JSON object", place, shown(value)));
  return std::move(value.as_object());
}

Result<json::object> read_json_object(const std::filesystem::path& path, std::size_t size_max) {
  const auto file = MappedFile::open_small(path, size_max);
  if (!file) return file.error();
  return parse_json_object(file->text(), path.string());
}

const json::value* JsonFields::find(std::string_view field) const {
  const json::value* value = object_.if_contains(field);
  return value && !value->is_null() ? value : nullptr;
}

bool JsonFields::has(std::string_view field) const {
  return find(field) != nullptr;
}

bool JsonFields::is_null(std::string_view field) const {
  const json::value* value = object_.if_contains(field);
  return value && value->is_null();
}

void JsonFields::refuse(std::string_view field, std::string_view why) {
  if (error_) return;
  const json::value* value = object_.if_contains(field);
  error_ = make_error(ErrorCode::invalid_input,
                      value ? fmt::format("{}: {} = {}: {}", place_, field, shown(*value), why)
                            : fmt::format("{}: {}: {}", place_, field, why));
}

std::optional<std::int64_t> JsonFields::integer_of(const json::value& value, std::string_view field,
                                                   Limits<std::int64_t> limits) {
  const std::int64_t* integer = value.if_int64();
  if (integer && *integer >= limits.least && *integer <= limits.most) return *integer;
  refuse(field, fmt::format("must be an integer from {} to {}", limits.least, limits.most));
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::maybe_integer(std::string_view field, Limits<std::int64_t> limits) {
  const json::value* value = find(field);
  return value ? integer_of(*value, field, limits) : std::nullopt;
}

std::int64_t JsonFields::integer(std::string_view field, Limits<std::int64_t> limits) {
  if (!has(field)) refuse(field, "is missing, but must be stated");
  return maybe_integer(field, limits).value_or(limits.least);
}

std::optional<double> JsonFields::maybe_number(std::string_view field, Limits<double> limits) {
  const json::value* value = find(field);
  if (!value) return std::nullopt;
  if (value->is_number()) {
    const double number = value->to_number<double>();
    if (number >= limits.least && number <= limits.most) return number;
  }
  refuse(field, fmt::format("must be a number from {} to {}", limits.least, limits.most));
  return std::nullopt;
}

double JsonFields::number(std::string_view field, Limits<double> limits) {
  if (!has(field)) refuse(field, "is missing, but must be stated");
  return maybe_number(field, limits).value_or(limits.least);
}

std::optional<std::string> JsonFields::maybe_text(std::string_view field) {
  const json::value* value = find(field);
  if (!value) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  refuse(field, "must be a string");
  return std::nullopt;
}

std::string JsonFields::text(std::string_view field) {
  if (!has(field)) refuse(field, "is missing, but must be stated");
  return maybe_text(field).value_or("");
}

std::optional<bool> JsonFields::maybe_flag(std::string_view field) {
  const json::value* value = find(field);
  if (!value) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  refuse(field, "must be true or false");
  return std::nullopt;
}

std::vector<std::int64_t> JsonFields::integers(std::string_view field, Limits<std::int64_t> limits) {
  const json::value* value = find(field);
  if (!value) return {};
  std::vector<std::int64_t> all;
  const auto take = [&](const json::value& one) {
    if (const auto integer = integer_of(one, field, limits)) all.push_back(*integer);
  };
  if (!value->is_array()) take(*value);
  if (value->is_array())
    for (const json::value& one : value->get_array()) take(one);
  return all;
}

const json::object* JsonFields::maybe_object(std::string_view field) {
  const json::value* value = find(field);
  if (value && !value->is_object()) refuse(field, "must be an object");
  return value ? value->if_object() : nullptr;
}

const json::array* JsonFields::maybe_array(std::string_view field) {
  const json::value* value = find(field);
  if (value && !value->is_array()) refuse(field, "must be a list");
  return value ? value->if_array() : nullptr;
}

}  // namespace sangam
