// A handler for Boost.JSON's event parser that knows the three levels of a safetensors header.
#include "storage/checkpoint/header_reader.hpp"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <utility>

namespace sangam {
namespace {

namespace json = boost::json;
using Fault = boost::json::error_code;
using Text = boost::json::string_view;

/// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"key": "value"}}
class HeaderHandler {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = 65536;
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  bool on_document_begin(Fault&) { return true; }
  bool on_document_end(Fault&) { return true; }

  bool on_object_begin(Fault& fault) {
    if (++depth_ == 1) return true;
    if (depth_ > 2 || array_open_) return refuse(fault, "holds an object inside");
    if (name_ == "__metadata__") return metadata_seen_++ == 0 || refuse(fault, "is there twice");
    entries_.push_back({name_, {}, {}, 0, 0});
    dtypes_ = shapes_ = offsets_ = 0;
    return true;
  }

  bool on_object_end(std::size_t, Fault& fault) {
    const bool tensor = depth_ == 2 && !in_metadata();
    --depth_;
    if (!tensor) return true;
    if (dtypes_ == 1 && shapes_ == 1 && offsets_ == 1) return true;
    return refuse(fault, "needs dtype, shape and data_offsets, once each");
  }

  bool on_array_begin(Fault& fault) {
    if (depth_ != 2 || in_metadata() || array_open_) return refuse(fault, "holds a list where none may be");
    array_open_ = true;
    integers_.clear();
    return true;
  }

  bool on_array_end(std::size_t, Fault& fault) {
    array_open_ = false;
    if (field_ == "shape") {
      ++shapes_;
      entries_.back().shape = integers_;
    }
    if (field_ != "data_offsets") return true;
    ++offsets_;
    if (integers_.size() != 2) return refuse(fault, "needs two data_offsets");
    entries_.back().begin = integers_[0];
    entries_.back().end = integers_[1];
    return true;
  }

  bool on_key_part(Text part, std::size_t, Fault&) { return key_.append(part.data(), part.size()), true; }
  bool on_key(Text part, std::size_t, Fault&) {
    key_.append(part.data(), part.size());
    (depth_ == 1 ? name_ : field_) = std::exchange(key_, {});
    return true;
  }

  bool on_string_part(Text part, std::size_t, Fault&) { return text_.append(part.data(), part.size()), true; }
  bool on_string(Text part, std::size_t, Fault& fault) {
    text_.append(part.data(), part.size());
    const std::string text = std::exchange(text_, {});
    if (in_metadata()) return true;
    if (depth_ != 2 || array_open_ || field_ != "dtype")
      return refuse(fault, "holds a string where none may be");
    ++dtypes_;
    entries_.back().dtype = text;
    return true;
  }

  bool on_number_part(Text, Fault&) { return true; }
  bool on_int64(std::int64_t value, Text, Fault& fault) {
    if (!array_open_) return refuse(fault, "holds a number where none may be");
    if (value < 0) return refuse(fault, fmt::format("has a negative number in {}: {}", field_, value));
    // A list can be longer than any tensor has dimensions; the header's size alone would not bound it.
    if (integers_.size() == kTensorRankMax)
      return refuse(fault, fmt::format("has more than {} numbers in {}", kTensorRankMax, field_));
    integers_.push_back(value);
    return true;
  }
  bool on_uint64(std::uint64_t, Text, Fault& fault) { return refuse(fault, "has a number of 2^63 or more"); }
  bool on_double(double, Text, Fault& fault) { return refuse(fault, "has a number that is no integer"); }
  bool on_bool(bool, Fault& fault) { return refuse(fault, "holds true or false where none may be"); }
  bool on_null(Fault& fault) { return refuse(fault, "holds null where none may be"); }
  bool on_comment_part(Text, Fault&) { return true; }
  bool on_comment(Text, Fault&) { return true; }

  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] std::vector<HeaderEntry> take() { return std::move(entries_); }

 private:
  [[nodiscard]] bool in_metadata() const { return depth_ == 2 && name_ == "__metadata__"; }

  bool refuse(Fault& fault, const std::string& why) {
    refusal_ = fmt::format("entry '{}' {}", name_, why);
    fault = json::error::syntax;
    return false;
  }

  std::vector<HeaderEntry> entries_;
  std::string refusal_;
  std::string name_, field_, key_, text_;
  std::vector<std::int64_t> integers_;
  int depth_ = 0;
  int metadata_seen_ = 0;
  int dtypes_ = 0, shapes_ = 0, offsets_ = 0;
  bool array_open_ = false;
};

}  // namespace

Result<std::vector<HeaderEntry>> read_header(std::string_view text, const std::string& place) {
  json::parse_options options;
  options.max_depth = 4;
  json::basic_parser<HeaderHandler> parser(options);
  Fault fault;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), fault);
  if (!fault && text.find_first_not_of(" \t\r\n", used) != std::string_view::npos)
    fault = json::error::extra_data;
  if (!fault) return parser.handler().take();
  const std::string& refusal = parser.handler().refusal();
  return make_error(
      ErrorCode::corrupt,
      fmt::format("{}: header byte {} of {}: {}; download or export the file again", place, used, text.size(),
                  refusal.empty() ? "not valid JSON: " + fault.message() : refusal));
}

}  // namespace sangam
