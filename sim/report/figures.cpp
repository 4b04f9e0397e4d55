// Numbers as text.
#include "sim/report/figures.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>

namespace sangam::sim {

std::string decimal(double value, int places) {
  std::array<char, 400> text{};  // The longest double has 309 digits before its point.
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, places).ptr;
  return {text.data(), end};
}

std::string grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::int64_t first = count < 0 ? 1 : 0;
  for (auto at = std::int64_t(text.size()) - 3; at > first; at -= 3) text.insert(std::size_t(at), ",");
  return text;
}

std::string percent(std::optional<double> part) {
  return part ? decimal(100.0 * *part, 2) + " %" : "-";
}

std::string span_text(Micros time) {
  const double seconds = std::chrono::duration<double>(time).count();
  const auto short_decimal = [](double value) { return decimal(value, value == std::floor(value) ? 0 : 1); };
  if (seconds < 120.0) return short_decimal(std::round(seconds * 10.0) / 10.0) + " s";
  if (seconds < 7200.0) return short_decimal(std::round(seconds / 6.0) / 10.0) + " min";
  return short_decimal(std::round(seconds / 360.0) / 10.0) + " h";
}

std::string spark_line(std::span<const std::optional<double>> values, double low, double high) {
  constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  for (const auto& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    const double part = high > low ? (*value - low) / (high - low) : 0.0;
    line += kBars[std::size_t(std::lround(std::clamp(part, 0.0, 1.0) * (kBars.size() - 1)))];
  }
  return line;
}

std::size_t columns_of(const std::string& text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string right(const std::string& text, std::size_t columns) {
  const auto has = columns_of(text);
  return std::string(has < columns ? columns - has : 0, ' ') + text;
}

std::string left(const std::string& text, std::size_t columns) {
  const auto has = columns_of(text);
  return text + std::string(has < columns ? columns - has : 0, ' ');
}

}  // namespace sangam::sim
