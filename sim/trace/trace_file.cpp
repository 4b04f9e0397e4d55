// Readers of both formats and the writer of one.
#include "sim/trace/trace_file.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "sim/trace/zip_file.hpp"
#include "storage/json/json_fields.hpp"

namespace sangam::sim {
namespace {

constexpr std::string_view kHeader = "arrival_s,app,input_tokens,output_tokens";
constexpr std::int64_t kTokensMax = 100'000'000;
constexpr double kSecondsMax = 1e9;  // 31 years; as microseconds they fit 64 bits.
constexpr std::size_t kNameMax = 200;

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  return "'" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

/// Apps by name, in order of first appearance.
class Apps {
 public:
  std::uint32_t index_of(std::string_view name) {
    const auto [place, fresh] = indices_.try_emplace(std::string(name), std::uint32_t(names_.size()));
    if (fresh) names_.emplace_back(name);
    return place->second;
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::unordered_map<std::string, std::uint32_t> indices_;
  std::vector<std::string> names_;
};

/// The fields of one CSV line. What is wrong is remembered, the first of it.
class CsvLine {
 public:
  explicit CsvLine(std::string_view line) {
    for (std::size_t at = 0; at <= line.size(); ++count_) {
      const auto comma = std::min(line.find(',', at), line.size());
      if (count_ < fields_.size()) fields_[count_] = line.substr(at, comma - at);
      at = comma + 1;
    }
    if (count_ != fields_.size()) {
      error_ = std::to_string(count_) + " fields instead of 4; write " + std::string(kHeader);
    }
  }

  Micros arrival() {
    double seconds = 0.0;
    const auto field = fields_[0];
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), seconds);
    if (failure != std::errc() || end != field.data() + field.size() || !(seconds >= 0.0 && seconds <= kSecondsMax)) {
      refuse("arrival_s", field, "seconds since the trace began, from 0 to 1e9");
    }
    return Micros(std::llround(seconds * 1e6));
  }

  std::string_view app() {
    const auto field = fields_[1];
    const auto strange = [](unsigned char c) { return c < ' ' || c == '"'; };
    if (field.empty() || field.size() > kNameMax || std::any_of(field.begin(), field.end(), strange)) {
      refuse("app", field, "a name of 1 to 200 bytes without quotes and control characters");
    }
    return field;
  }

  Tokens tokens(std::size_t index, const char* name) {
    std::int64_t count = 0;
    const auto field = fields_[index];
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), count);
    if (failure != std::errc() || end != field.data() + field.size() || count < 1 || count > kTokensMax) {
      refuse(name, field, "a whole number from 1 to 100000000");
    }
    return Tokens(count);
  }

  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void refuse(const char* name, std::string_view field, const char* expected) {
    if (error_.empty()) error_ = std::string(name) + " is " + quoted(field) + "; expected " + expected;
  }

  std::array<std::string_view, 4> fields_;
  std::size_t count_ = 0;
  std::string error_;
};

Result<Trace> read_csv(ZipReader& file) {
  Trace trace;
  Apps apps;
  std::string_view line;
  while (true) {
    const auto more = file.next(line);
    if (!more) return more.error();
    if (!*more) break;
    if (line.empty()) continue;
    CsvLine fields(line);
    const auto arrival = fields.arrival();
    const auto app = fields.app();
    const auto input = fields.tokens(2, "input_tokens");
    const auto output = fields.tokens(3, "output_tokens");
    if (!fields.error().empty()) return make_error(ErrorCode::invalid_input, file.place() + ": " + fields.error());
    trace.requests.push_back({arrival, apps.index_of(app), input, output});
  }
  trace.apps = apps.take();
  return trace;
}

Result<TraceRequest> mooncake_request(std::string_view line, const std::string& place) {
  const auto object = parse_json_object(line, place);
  if (!object) return object.error();
  JsonFields fields(*object, place);
  const double millis = fields.number("timestamp", {0.0, kSecondsMax * 1e3});
  const Tokens input(fields.integer("input_length", {1, kTokensMax}));
  const Tokens output(fields.integer("output_length", {1, kTokensMax}));
  if (fields.error()) return *fields.error();
  return TraceRequest{Micros(std::llround(millis * 1e3)), 0, input, output};
}

/// `line` is the first one, read already.
Result<Trace> read_mooncake(ZipReader& file, std::string_view line, const std::string& app) {
  Trace trace;
  trace.apps = {app};
  while (true) {
    if (!line.empty()) {
      const auto request = mooncake_request(line, file.place());
      if (!request) return request.error();
      trace.requests.push_back(*request);
    }
    const auto more = file.next(line);
    if (!more) return more.error();
    if (!*more) return trace;
  }
}

std::string name_without_endings(std::filesystem::path path) {
  while (path.has_extension()) path = path.stem();
  return path.filename().string();
}

Result<Trace> read_either(ZipReader& file, const std::filesystem::path& path) {
  std::string_view line;
  const auto more = file.next(line);
  if (!more) return more.error();
  if (!*more) return make_error(ErrorCode::invalid_input, path.string() + ": is empty; expected " + std::string(kHeader));
  if (line.starts_with('{')) return read_mooncake(file, line, name_without_endings(path));
  if (line == kHeader) return read_csv(file);
  return make_error(ErrorCode::invalid_input, file.place() + ": begins with " + quoted(line) + "; expected " +
                                                  std::string(kHeader) + ", or JSON lines with timestamp, input_length and output_length");
}

}  // namespace

Result<Trace> read_trace(const std::filesystem::path& path) {
  auto file = ZipReader::open(path);
  if (!file) return file.error();
  auto trace = read_either(*file, path);
  if (!trace) return trace;
  if (trace->requests.empty()) return make_error(ErrorCode::invalid_input, path.string() + ": holds no request");
  std::stable_sort(trace->requests.begin(), trace->requests.end(),
                   [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
  return trace;
}

Result<void> write_trace(const Trace& trace, const std::filesystem::path& path) {
  auto file = ZipWriter::create(path);
  if (!file) return file.error();
  if (auto written = file->write(std::string(kHeader) + "\n"); !written) return written;
  std::array<char, 32> fraction{};
  for (const auto& request : trace.requests) {
    const auto seconds = request.arrival.count() / 1'000'000;
    const auto micros = request.arrival.count() % 1'000'000 + 1'000'000;  // The 1 in front keeps leading zeros.
    const auto end = std::to_chars(fraction.data(), fraction.data() + fraction.size(), micros).ptr;
    const std::string line = std::to_string(seconds) + "." + std::string(fraction.data() + 1, end) + "," + trace.apps[request.app] + "," +
                             std::to_string(request.input.count()) + "," + std::to_string(request.output.count()) + "\n";
    if (auto written = file->write(line); !written) return written;
  }
  return file->finish();
}

}  // namespace sangam::sim
