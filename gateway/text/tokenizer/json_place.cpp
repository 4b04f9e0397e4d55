// Checked access to boost::json.
#include "gateway/text/tokenizer/json_place.hpp"

#include <boost/json.hpp>

namespace sangam::text {
namespace {

constexpr std::size_t kDepthLimit = 64;

std::string_view kind_name(const boost::json::value& value) {
  const boost::json::string_view name = to_string(value.kind());
  return {name.data(), name.size()};
}

}  // namespace

void JsonPlace::refuse(const std::string& why) const {
  throw Malformed(path_ + ": " + why);
}

void JsonPlace::refuse_type(const char* wanted) const {
  refuse(std::string("expected ") + wanted + ", found " + std::string(kind_name(*value_)));
}

const boost::json::object& JsonPlace::object() const {
  if (!value_->is_object()) refuse_type("an object");
  return value_->get_object();
}

const boost::json::array& JsonPlace::array() const {
  if (!value_->is_array()) refuse_type("an array");
  return value_->get_array();
}

std::optional<JsonPlace> JsonPlace::find(std::string_view key) const {
  const boost::json::value* found = object().if_contains({key.data(), key.size()});
  if (found == nullptr || found->is_null()) return std::nullopt;
  return JsonPlace(*found, path_ + "." + std::string(key));
}

JsonPlace JsonPlace::at(std::string_view key) const {
  auto found = find(key);
  if (!found) refuse("the field \"" + std::string(key) + "\" is missing");
  return *std::move(found);
}

JsonPlace JsonPlace::item(std::size_t index) const {
  return JsonPlace(array()[index], path_ + "[" + std::to_string(index) + "]");
}

std::vector<JsonPlace> JsonPlace::items() const {
  std::vector<JsonPlace> places;
  places.reserve(array().size());
  for (std::size_t i = 0; i < array().size(); ++i) places.push_back(item(i));
  return places;
}

std::string JsonPlace::string() const {
  if (!is_string()) refuse_type("a string");
  return {value_->get_string().data(), value_->get_string().size()};
}

bool JsonPlace::boolean() const {
  if (!value_->is_bool()) refuse_type("true or false");
  return value_->get_bool();
}

std::uint64_t JsonPlace::unsigned_integer() const {
  if (value_->is_uint64()) return value_->get_uint64();
  if (!value_->is_int64() || value_->get_int64() < 0) refuse_type("a whole number that is not negative");
  return static_cast<std::uint64_t>(value_->get_int64());
}

std::string JsonPlace::string_or(std::string_view key, std::string_view otherwise) const {
  const auto place = find(key);
  return place ? place->string() : std::string(otherwise);
}

bool JsonPlace::boolean_or(std::string_view key, bool otherwise) const {
  const auto place = find(key);
  return place ? place->boolean() : otherwise;
}

bool JsonPlace::is_string() const {
  return value_->is_string();
}

boost::json::value parse_json(std::string_view text, const std::string& path) {
  boost::json::parse_options options;
  options.max_depth = kDepthLimit;
  // One block of memory for the whole document: it is read once and thrown away.
  boost::json::stream_parser parser(boost::json::make_shared_resource<boost::json::monotonic_resource>(),
                                    options);
  boost::json::error_code error;
  const std::size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && read < text.size()) error = boost::json::error::extra_data;
  if (!error) parser.finish(error);
  if (error) throw Malformed(path + ": not JSON at byte " + std::to_string(read) + ": " + error.message());
  return parser.release();
}

}  // namespace sangam::text
