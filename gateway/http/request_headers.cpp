// Reads headers.
#include "gateway/http/request_headers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace sangam {
namespace {

constexpr double kMillisMax = 86'400'000.0;  // One day; longer promises are typing errors.
constexpr std::size_t kRequestIdMax = 128;

std::optional<double> as_number(std::string_view text) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

ApiError bad_header(std::string_view name, std::string_view value, std::string_view wanted) {
  return invalid(std::string(name), "Invalid header " + std::string(name) + ": '" + std::string(value) +
                                        "'; expected " + std::string(wanted) + ".");
}

template <std::size_t N>
bool read_hex(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  if (text.size() != 2 * N) return false;
  for (std::size_t i = 0; i < N; ++i) {
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2) return false;
  }
  return true;
}

}  // namespace

std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = request.header("authorization");
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? char(a + 32) : a) == b; };
  if (value.size() > kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), value.begin(), [&](char a, char b) { return same(b, a); })) {
    const std::size_t from = value.find_first_not_of(' ', kScheme.size());
    return from == value.npos ? std::string_view() : value.substr(from);
  }
  return request.header("x-api-key");
}

std::optional<Millis> go_duration(std::string_view text) {
  double total = 0.0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto value = as_number(text.substr(0, digits));
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of("0123456789."), text.size());
    const std::string_view unit = text.substr(0, letters);
    text.remove_prefix(letters);
    const double scale = unit == "h"    ? 3.6e6
                         : unit == "m"  ? 6e4
                         : unit == "s"  ? 1e3
                         : unit == "ms" ? 1.0
                         : unit == "us" ? 1e-3
                         : unit == "ns" ? 1e-6
                                        : 0.0;
    if (!value || scale == 0.0) return std::nullopt;
    total += *value * scale;
  }
  if (total > kMillisMax) return std::nullopt;
  return Millis(std::int64_t(std::ceil(total)));
}

ApiResult<Urgency> urgency_of(const HttpRequest& request, Urgency urgency) {
  if (const auto text = request.header("x-slo-ttft-ms"); !text.empty()) {
    const auto millis = as_number(text);
    if (!millis || *millis < 1 || *millis > kMillisMax)
      return bad_header("x-slo-ttft-ms", text, "milliseconds from 1");
    urgency.ttft = Millis(std::int64_t(*millis));
  }
  if (const auto text = request.header("x-llm-d-inference-ttl"); !text.empty()) {
    urgency.ttl = go_duration(text);
    if (!urgency.ttl || *urgency.ttl <= Millis{0}) {
      return bad_header("x-llm-d-inference-ttl", text, "a duration such as 1.5s or 300ms");
    }
  }
  if (const auto text = request.header("x-sangam-class"); !text.empty()) {
    if (text == "deadline")
      urgency.service_class = ServiceClass::deadline;
    else if (text == "normal")
      urgency.service_class = ServiceClass::normal;
    else if (text == "best_effort")
      urgency.service_class = ServiceClass::best_effort;
    else
      return bad_header("x-sangam-class", text, "deadline, normal or best_effort");
  }
  if (const auto text = request.header("x-sangam-when-late"); !text.empty()) {
    if (text != "refuse" && text != "requeue")
      return bad_header("x-sangam-when-late", text, "refuse or requeue");
    urgency.requeue_when_late = text == "requeue";
  }
  return urgency;
}

TraceContext trace_of(const HttpRequest& request) {
  const std::string_view text = request.header("traceparent");  // 2-32-16-2 hexadecimal digits
  TraceContext trace;
  const bool shaped = text.size() >= 55 && text[2] == '-' && text[35] == '-' && text[52] == '-';
  if (!shaped || !read_hex(text.substr(3, 32), trace.trace) || !read_hex(text.substr(36, 16), trace.span))
    return {};
  return trace;
}

std::optional<std::string> request_id_of(const HttpRequest& request) {
  const std::string_view id = request.header("x-request-id");
  const bool fit = !id.empty() && id.size() <= kRequestIdMax &&
                   std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return fit ? std::optional(std::string(id)) : std::nullopt;
}

bool comes_straight_from_here(const HttpRequest& request) {
  if (!request.from_this_host) return false;
  for (const char* name : {"forwarded", "x-forwarded-for", "x-real-ip", "via", "origin"}) {
    if (!request.header(name).empty()) return false;
  }
  return true;
}

}  // namespace sangam
