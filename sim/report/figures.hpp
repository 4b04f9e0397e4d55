// How numbers are written for people: grouped, with units, and small bars in a line of text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "messages/vocabulary/time.hpp"

namespace sangam::sim {

[[nodiscard]] std::string decimal(double value, int places);   ///< "3.10"
[[nodiscard]] std::string grouped(std::int64_t count);         ///< "603,000"
[[nodiscard]] std::string percent(std::optional<double> part); ///< "97.80 %", or "-" where there is none.
[[nodiscard]] std::string span_text(Micros time);              ///< "1.5 s", "30 min", "24 h"

/// Eight heights of bars from `low` to `high`, a space where there is no value.
[[nodiscard]] std::string spark_line(std::span<const std::optional<double>> values, double low, double high);

/// Columns that a terminal shows of `text`: UTF-8 characters of width one are assumed.
[[nodiscard]] std::size_t columns_of(const std::string& text);
/// With spaces in front or behind, until `columns` are filled.
[[nodiscard]] std::string right(const std::string& text, std::size_t columns);
[[nodiscard]] std::string left(const std::string& text, std::size_t columns);

}  // namespace sangam::sim
