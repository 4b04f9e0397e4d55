// boost::json to template values.
#include "gateway/text/jinja/json_value.hpp"

#include <boost/json.hpp>

namespace sangam::jinja {
namespace {

constexpr std::size_t kDepthLimit = 128;

std::string copy(boost::json::string_view text) {
  return {text.data(), text.size()};
}

Value converted(const boost::json::value& json) {
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value();
    case boost::json::kind::bool_:
      return json.get_bool();
    case boost::json::kind::int64:
      return std::int64_t{json.get_int64()};
    case boost::json::kind::uint64:
      return static_cast<double>(json.get_uint64());
    case boost::json::kind::double_:
      return json.get_double();
    case boost::json::kind::string:
      return copy(json.get_string());
    case boost::json::kind::array:
      break;
    case boost::json::kind::object: {
      Dict dict;
      dict.entries.reserve(json.get_object().size());
      for (const auto& entry : json.get_object())
        dict.entries.emplace_back(copy(entry.key()), converted(entry.value()));
      return dict;
    }
  }
  List items;
  items.reserve(json.get_array().size());
  for (const auto& item : json.get_array()) items.push_back(converted(item));
  return items;
}

}  // namespace

Value value_of_json(std::string_view text, std::string_view name) {
  boost::json::parse_options options;
  options.max_depth = kDepthLimit;
  boost::json::monotonic_resource memory;
  boost::json::error_code error;
  const auto json = boost::json::parse({text.data(), text.size()}, error, &memory, options);
  if (error) throw TemplateError(std::string(name) + ": not JSON: " + error.message());
  return converted(json);
}

}  // namespace sangam::jinja
