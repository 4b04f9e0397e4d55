// Rows of figures, one column a report.
#include "sim/report/table.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <functional>
#include <set>
#include <vector>

#include "sim/report/figures.hpp"

namespace sangam::sim {
namespace {

constexpr std::size_t kAppsShown = 5;
constexpr const char* kAbsent = "-";

using Figure = std::function<std::string(const Report&)>;

struct Row {
  std::string name;  ///< Empty: a blank line.
  Figure figure;
};

std::string millis(std::optional<double> value) {
  return value ? decimal(*value, *value < 10.0 ? 2 : 0) + " ms" : kAbsent;
}

std::string rate(double per_second) {
  return decimal(per_second, per_second < 10.0 ? 2 : 1) + " /s";
}

std::string hours(std::optional<double> value) {
  return value ? grouped(std::int64_t(*value)) + (*value < 100.0 ? decimal(*value - double(std::int64_t(*value)), 2).substr(1) : "") : kAbsent;
}

std::string saved(const Report& report) {
  if (!report.device_hours || !report.device_hours_static) return kAbsent;
  return percent(1.0 - *report.device_hours / *report.device_hours_static);
}

std::string worst(const Report& report) {
  const auto* app = report.worst_app();
  return app == nullptr ? kAbsent : app->name + " " + percent(app->outcome.token_share());
}

Row failure_row(ErrorCode code) {
  const char* name = boost::describe::enum_to_string(code, "unknown");
  return {"ended by " + std::string(name), [code](const Report& r) {
            const auto found = r.failures.find(code);
            return grouped(found == r.failures.end() ? 0 : std::int64_t(found->second));
          }};
}

std::vector<Row> load_rows() {
  return {{"requests", [](const Report& r) { return grouped(std::int64_t(r.all.requests)); }},
          {"time", [](const Report& r) { return span_text(r.duration); }},
          {"load", [](const Report& r) { return rate(r.rate_of(r.all.requests)); }},
          {"prompt tokens", [](const Report& r) { return grouped(r.all.input.count()); }},
          {"answer tokens", [](const Report& r) { return grouped(r.all.output.count()); }}};
}

std::vector<Row> outcome_rows() {
  return {{"tokens on time", [](const Report& r) { return percent(r.all.token_share()); }},
          {"requests on time", [](const Report& r) { return percent(r.all.request_share()); }},
          {"  end to end", [](const Report& r) { return percent(r.all.e2e_share()); }},
          {"goodput", [](const Report& r) { return rate(r.rate_of(r.all.on_time)); }},
          {"  end to end", [](const Report& r) { return rate(r.rate_of(r.all.e2e_on_time)); }},
          {"apps, mean", [](const Report& r) { return percent(r.app_share_mean()); }},
          {"apps, worst", worst}};
}

std::vector<Row> wait_rows() {
  return {{"TTFT on time", [](const Report& r) { return percent(r.all.ttft_share()); }},
          {"  median", [](const Report& r) { return millis(r.ttft.p50); }},
          {"  p90", [](const Report& r) { return millis(r.ttft.p90); }},
          {"  p99", [](const Report& r) { return millis(r.ttft.p99); }},
          {"  longest", [](const Report& r) { return millis(r.ttft.most); }},
          {"TPOT on time", [](const Report& r) { return percent(r.all.tpot_share()); }},
          {"  median", [](const Report& r) { return millis(r.tpot.p50); }},
          {"  p90", [](const Report& r) { return millis(r.tpot.p90); }},
          {"  p99", [](const Report& r) { return millis(r.tpot.p99); }},
          {"  longest", [](const Report& r) { return millis(r.tpot.most); }}};
}

std::vector<Row> device_rows() {
  return {{"device-hours", [](const Report& r) { return hours(r.device_hours); }},
          {"  all devices", [](const Report& r) { return hours(r.device_hours_static); }},
          {"  saved", saved}};
}

std::vector<Row> rows_for(std::span<const Report> reports) {
  std::vector<Row> rows;
  const auto add = [&rows](std::vector<Row> block) {
    if (!rows.empty()) rows.push_back({});
    std::move(block.begin(), block.end(), std::back_inserter(rows));
  };
  add(load_rows());
  add(outcome_rows());
  add(wait_rows());
  if (std::any_of(reports.begin(), reports.end(), [](const auto& r) { return r.device_hours.has_value(); })) add(device_rows());
  std::set<ErrorCode> codes;
  for (const auto& report : reports) {
    for (const auto& [code, count] : report.failures) codes.insert(code);
  }
  std::vector<Row> failures;
  for (const auto code : codes) failures.push_back(failure_row(code));
  if (!failures.empty()) add(std::move(failures));
  return rows;
}

template <class Value>
std::vector<std::optional<double>> course(const Report& report, Value value) {
  std::vector<std::optional<double>> values;
  for (const auto& window : report.windows) values.push_back(value(window));
  return values;
}

/// A line of bars, with what the highest and the lowest one mean.
std::string course_line(const std::string& name, const std::vector<std::optional<double>>& values, double high, const std::string& scale) {
  return left(name, 18) + spark_line(values, 0.0, high) + "  " + scale + "\n";
}

std::string courses(const Report& report) {
  const auto load = course(report, [](const auto& w) { return std::optional(w.rate_of(w.outcome.requests)); });
  const auto good = course(report, [](const auto& w) { return std::optional(w.rate_of(w.outcome.on_time)); });
  double high = 0.0;
  for (const auto& value : load) high = std::max(high, *value);
  const std::string scale = "0 to " + rate(high);
  std::string text = "every " + span_text(report.windows.front().width) + "\n";
  text += course_line("  load", load, high, scale) + course_line("  goodput", good, high, scale);
  text += course_line("  tokens on time", course(report, [](const auto& w) { return w.outcome.token_share(); }), 1.0, "0 to 100 %");
  if (!report.device_hours) return text;
  const auto devices = course(report, [](const auto& w) { return w.devices; });
  double most = 0.0;
  for (const auto& value : devices) most = std::max(most, value.value_or(0.0));
  return text + course_line("  devices", devices, most, "0 to " + decimal(most, 1));
}

std::string worst_apps(const Report& report) {
  std::vector<const AppOutcome*> apps;
  std::size_t name_width = 4;
  for (const auto& app : report.apps) apps.push_back(&app);
  std::stable_sort(apps.begin(), apps.end(), [](const auto* a, const auto* b) {
    return a->outcome.token_share().value_or(1.0) < b->outcome.token_share().value_or(1.0);
  });
  apps.resize(std::min(apps.size(), kAppsShown));
  for (const auto* app : apps) name_width = std::max(name_width, columns_of(app->name));
  std::string text = "worst apps" + std::string(name_width > 8 ? name_width - 8 : 0, ' ') + right("requests", 12) + right("requests on time", 18) + right("tokens on time", 16) + "\n";
  for (const auto* app : apps) {
    const auto& outcome = app->outcome;
    text += "  " + left(app->name, std::max<std::size_t>(name_width, 8)) + right(grouped(std::int64_t(outcome.requests)), 12) +
            right(percent(outcome.request_share()), 18) + right(percent(outcome.token_share()), 16) + "\n";
  }
  return text;
}

}  // namespace

std::string compare(std::span<const Report> reports) {
  const auto rows = rows_for(reports);
  std::vector<std::vector<std::string>> columns;
  for (const auto& report : reports) {
    columns.emplace_back(1, report.title);
    for (const auto& row : rows) columns.back().push_back(row.name.empty() ? "" : row.figure(report));
  }
  std::size_t names = 0;
  for (const auto& row : rows) names = std::max(names, columns_of(row.name));
  std::string text;
  for (std::size_t line = 0; line <= rows.size(); ++line) {
    std::string one = left(line == 0 ? "" : rows[line - 1].name, names);
    for (const auto& column : columns) {
      std::size_t width = 0;
      for (const auto& cell : column) width = std::max(width, columns_of(cell));
      one += "  " + right(column[line], width);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  return text;
}

std::string table_of(const Report& report) {
  std::string text = compare(std::span(&report, 1)) + "\n" + courses(report);
  if (report.apps.size() > 1) text += "\n" + worst_apps(report);
  return text;
}

}  // namespace sangam::sim
