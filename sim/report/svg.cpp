// The page: heading, one column of panels a report, a common time axis.
#include "sim/report/svg.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "sim/report/chart.hpp"
#include "sim/report/figures.hpp"

namespace sangam::sim {
namespace {

constexpr double kWideColumn = 840.0;    // Of drawing area, where there is one report.
constexpr double kNarrowColumn = 460.0;  // Where there are several.
constexpr double kLeft = 72.0;
constexpr double kGap = 84.0;  // Between columns: the labels of the next one.
constexpr double kRight = 28.0;
constexpr double kTop = 112.0;      // Of the first panel.
constexpr double kLine = 18.0;      // Of the summary; narrow columns have two.
constexpr double kPanelGap = 56.0;
constexpr double kBottom = 60.0;
constexpr double kWasteLeast = 0.1;  // The on-time axis shows ten points at least.

constexpr const char* kStyle = R"(<style>
  svg { --page: #ffffff; --ink: #1f2328; --soft: #656d76; --grid: #e7eaee; --load: #8c959f; --good: #0969da; --devices: #8250df; --punctual: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #0d1117; --ink: #e6edf3; --soft: #8d96a0; --grid: #22272e; --load: #7d8590; --good: #58a6ff; --devices: #bc8cff; --punctual: #3fb950; }
  }
  .page { fill: var(--page); }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-size: 19px; font-weight: 600; }
  .summary { font-size: 13px; fill: var(--soft); }
  .heading { font-size: 13px; font-weight: 600; }
  .mark { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
  .grid { stroke: var(--grid); }
  .axis { stroke: var(--soft); }
  .stroke { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
  .load.stroke { stroke-width: 1.25; }
  .fill { fill: currentColor; fill-opacity: 0.16; }
  .swatch { fill: currentColor; }
  .load { color: var(--load); }
  .good { color: var(--good); }
  .devices { color: var(--devices); }
  .punctual { color: var(--punctual); }
</style>
)";

double seconds_of(Micros time) {
  return std::chrono::duration<double>(time).count();
}

/// In what the time axis counts.
struct TimeUnit {
  double seconds = 1.0;
  std::string name;
};

TimeUnit unit_for(double seconds) {
  if (seconds <= 180.0) return {1.0, "s"};
  return seconds <= 4 * 3600.0 ? TimeUnit{60.0, "min"} : TimeUnit{3600.0, "h"};
}

template <class Value>
std::vector<Piece> pieces_of(const Report& report, const TimeUnit& unit, Value value) {
  std::vector<Piece> pieces;
  for (const auto& window : report.windows) {
    const double begin = seconds_of(window.start) / unit.seconds;
    pieces.push_back({begin, begin + seconds_of(window.width) / unit.seconds, value(window)});
  }
  return pieces;
}

/// One row of the page: the same quantity of each report.
struct PanelRow {
  std::string heading;
  std::string unit;
  double height = 0.0;
  bool from_nought = true;
  std::vector<std::vector<Series>> series{};  ///< By report.
};

PanelRow load_row(std::span<const Report> reports, const TimeUnit& unit) {
  PanelRow row{"Requests per second", "", 210.0};
  for (const auto& report : reports) {
    auto load = pieces_of(report, unit, [](const auto& w) { return std::optional(w.rate_of(w.outcome.requests)); });
    auto good = pieces_of(report, unit, [](const auto& w) { return std::optional(w.rate_of(w.outcome.on_time)); });
    row.series.push_back({{"asked for", "load", Stroke::line, true, std::move(load)},
                          {"all tokens on time (goodput)", "good", Stroke::line, false, std::move(good)}});
  }
  return row;
}

PanelRow devices_row(std::span<const Report> reports, const TimeUnit& unit) {
  PanelRow row{"Devices in use", "", 120.0};
  for (const auto& report : reports) {
    row.series.push_back({{"", "devices", Stroke::steps, true, pieces_of(report, unit, [](const auto& w) { return w.devices; })}});
  }
  return row;
}

PanelRow punctual_row(std::span<const Report> reports, const TimeUnit& unit) {
  PanelRow row{"Tokens on time", " %", 150.0, false};
  for (const auto& report : reports) {
    auto pieces = pieces_of(report, unit, [](const auto& w) { return w.outcome.token_share(); });
    for (auto& piece : pieces) {
      if (piece.value) *piece.value *= 100.0;
    }
    row.series.push_back({{"", "punctual", Stroke::line, false, std::move(pieces)}});
  }
  return row;
}

Axis value_axis(const PanelRow& row) {
  double low = 100.0 * (1.0 - kWasteLeast), high = 0.0;
  for (const auto& column : row.series) {
    for (const auto& series : column) {
      for (const auto& piece : series.pieces) {
        low = std::min(low, piece.value.value_or(low));
        high = std::max(high, piece.value.value_or(high));
      }
    }
  }
  return row.from_nought ? round_axis(0.0, high, 4) : round_axis(low, 100.0, 5);
}

std::string summary(const Report& report) {
  std::string text = grouped(std::int64_t(report.all.requests)) + " requests in " + span_text(report.duration) + " · tokens on time " +
                     percent(report.all.token_share()) + " · goodput " + decimal(report.rate_of(report.all.on_time), 1) + " /s";
  if (report.device_hours) text += " · " + grouped(std::llround(*report.device_hours));
  if (report.device_hours && report.device_hours_static) text += " of " + grouped(std::llround(*report.device_hours_static));
  return report.device_hours ? text + " device-hours" : text;
}

/// The headline in two lines where a column is narrow.
std::vector<std::string> summary_lines(const Report& report, bool narrow) {
  const std::string text = summary(report);
  const auto middle = text.find(" · goodput");
  if (!narrow || middle == text.npos) return {text};
  return {text.substr(0, middle), text.substr(middle + std::string_view(" · ").size())};
}

std::string time_label(const Report& report, const TimeUnit& unit) {
  std::string text = "time (" + unit.name + ")";
  if (report.time_scale != 1.0) {
    text += ", " + decimal(report.time_scale, report.time_scale == std::floor(report.time_scale) ? 0 : 1) + " times as fast as it was recorded";
  }
  return text;
}

}  // namespace

std::string svg_of(std::span<const Report> reports) {
  double longest = 1.0;
  bool devices = false;
  for (const auto& report : reports) {
    longest = std::max(longest, seconds_of(report.duration));
    devices = devices || report.device_hours.has_value();
  }
  const TimeUnit unit = unit_for(longest);
  std::vector<PanelRow> rows{load_row(reports, unit)};
  if (devices) rows.push_back(devices_row(reports, unit));
  rows.push_back(punctual_row(reports, unit));

  const bool narrow = reports.size() > 1;
  const double column = narrow ? kNarrowColumn : kWideColumn;
  Axis time = round_axis(0.0, longest / unit.seconds, narrow ? 6 : 10);
  time.high = longest / unit.seconds;  // The frame ends with the run, on a mark or not.
  std::string body;
  double top = kTop + (narrow ? kLine : 0.0);
  for (const auto& row : rows) {
    const Axis value = value_axis(row);
    for (std::size_t i = 0; i < reports.size(); ++i) {
      const Frame frame{kLeft + double(i) * (column + kGap), top, column, row.height};
      body += draw({row.heading, row.unit, time, value, row.series[i], &row == &rows.back()}, frame);
    }
    top += row.height + kPanelGap;
  }
  const double height = top - kPanelGap + kBottom;
  const double width = kLeft + double(reports.size()) * (column + kGap) - kGap + kRight;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const double left = kLeft + double(i) * (column + kGap);
    body += text_at({left, 36.0, "title"}, reports[i].title);
    double at = 58.0;
    for (const auto& text : summary_lines(reports[i], narrow)) {
      body += text_at({left, at, "summary"}, text);
      at += kLine;
    }
    body += text_at({left + column, height - 18.0, "mark", "end"}, time_label(reports[i], unit));
  }
  const std::string size = decimal(width, 0) + " " + decimal(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"Load, goodput and tokens on time\" viewBox=\"0 0 " + size +
         "\" width=\"" + decimal(width, 0) + "\" height=\"" + decimal(height, 0) + "\">\n" + kStyle +
         "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n" + body + "</svg>\n";
}

}  // namespace sangam::sim
