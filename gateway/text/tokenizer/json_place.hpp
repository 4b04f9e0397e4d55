// Reading JSON of a known shape: a value that knows its place, so that every refusal can name it.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sangam::text {

/// The file is not what it should be. Thrown while a file is read, caught where the reading began.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The document outlives it.
class JsonPlace {
 public:
  JsonPlace(const boost::json::value& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] JsonPlace at(std::string_view key) const;
  /// Nothing where the key is absent or null.
  [[nodiscard]] std::optional<JsonPlace> find(std::string_view key) const;
  [[nodiscard]] std::vector<JsonPlace> items() const;
  /// The item of an array that has it.
  [[nodiscard]] JsonPlace item(std::size_t index) const;

  [[nodiscard]] std::string string() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::uint64_t unsigned_integer() const;

  [[nodiscard]] std::string string_or(std::string_view key, std::string_view otherwise) const;
  [[nodiscard]] bool boolean_or(std::string_view key, bool otherwise) const;

  [[nodiscard]] bool is_string() const;
  [[nodiscard]] const boost::json::object& object() const;
  [[nodiscard]] const boost::json::array& array() const;

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  [[noreturn]] void refuse_type(const char* wanted) const;

  const boost::json::value* value_;
  std::string path_;
};

/// Refuses text that is not JSON, with the byte where it stops being so.
[[nodiscard]] boost::json::value parse_json(std::string_view text, const std::string& path);

}  // namespace sangam::text
