// Statistics of a trace.
#include "sim/report/trace_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/report/figures.hpp"

namespace sangam::sim {
namespace {

constexpr std::size_t kAppsShown = 10;
constexpr std::size_t kBarsMost = 60;

struct AppSum {
  std::string name;
  std::int64_t requests = 0;
  std::int64_t input = 0;
  std::int64_t output = 0;
};

std::string row(const std::string& name, const std::string& value) {
  return left(name, 18) + value + "\n";
}

std::string lengths_row(const std::string& name, std::vector<std::int64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  const auto at = [&](double part) {
    const auto rank = std::size_t(std::ceil(part * double(lengths.size())));
    return grouped(lengths[std::max<std::size_t>(rank, 1) - 1]);
  };
  const double mean = double(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})) / double(lengths.size());
  return row(name, "mean " + decimal(mean, 1) + ", median " + at(0.5) + ", p90 " + at(0.9) + ", p99 " + at(0.99) + ", longest " + at(1.0));
}

/// Requests by piece of `width`.
std::vector<std::int64_t> counts_by(const Trace& trace, Micros width) {
  std::vector<std::int64_t> counts(std::size_t(trace.requests.back().arrival / width) + 1);
  for (const auto& request : trace.requests) ++counts[std::size_t(request.arrival / width)];
  return counts;
}

/// A minute a bar, or as many minutes as make it fit a line; less than a minute for short traces.
Micros bar_width(Micros span) {
  if (span < 10 * Seconds(60)) return std::max<Micros>(Millis(100), span / 30 + Micros(1));
  return Seconds(60) * ((span / Seconds(60)) / std::int64_t(kBarsMost) + 1);
}

std::string rates(const Trace& trace) {
  const Micros span = trace.requests.back().arrival;
  const Micros width = bar_width(span);
  const double seconds = std::chrono::duration<double>(width).count();
  std::vector<std::optional<double>> bars;
  double high = 0.0;
  for (const auto count : counts_by(trace, width)) {
    bars.emplace_back(double(count) / seconds);
    high = std::max(high, *bars.back());
  }
  if (bars.size() > 1) {  // The last piece is not whole.
    const double last = std::chrono::duration<double>(span % width).count();
    if (last < seconds / 2.0) bars.pop_back();
  }
  return row("every " + span_text(width), spark_line(bars, 0.0, high) + "  0 to " + decimal(high, 1) + " /s");
}

std::string apps_table(std::vector<AppSum> apps, std::int64_t requests, std::int64_t tokens) {
  std::stable_sort(apps.begin(), apps.end(), [](const auto& a, const auto& b) { return a.requests > b.requests; });
  std::size_t width = 8;
  for (const auto& app : apps) width = std::max(width, columns_of(app.name));
  std::string text = left("largest apps", width + 2) + right("requests", 12) + right("share", 10) + right("of tokens", 11) +
                     right("prompt", 10) + right("answer", 9) + "\n";
  for (std::size_t i = 0; i < std::min(apps.size(), kAppsShown); ++i) {
    const auto& app = apps[i];
    const double count = double(app.requests);
    text += "  " + left(app.name, width) + right(grouped(app.requests), 12) + right(percent(count / double(requests)), 10) +
            right(percent(double(app.input + app.output) / double(tokens)), 11) + right(decimal(double(app.input) / count, 1), 10) +
            right(decimal(double(app.output) / count, 1), 9) + "\n";
  }
  if (apps.size() > kAppsShown) text += "  and " + std::to_string(apps.size() - kAppsShown) + " more\n";
  return text;
}

}  // namespace

std::string table_of(const Trace& trace) {
  if (trace.requests.empty()) return "no requests\n";
  std::vector<AppSum> apps;
  for (const auto& name : trace.apps) apps.push_back({name});
  std::vector<std::int64_t> inputs, outputs;
  AppSum all;
  for (const auto& request : trace.requests) {
    inputs.push_back(request.input.count());
    outputs.push_back(request.output.count());
    for (auto* sum : {&apps[request.app], &all}) {
      ++sum->requests;
      sum->input += request.input.count();
      sum->output += request.output.count();
    }
  }
  std::erase_if(apps, [](const auto& app) { return app.requests == 0; });
  const Micros span = trace.requests.back().arrival;
  const auto by_second = counts_by(trace, Seconds(1));
  const double seconds = std::max(1.0, std::chrono::duration<double>(span).count());
  std::string text = row("requests", grouped(all.requests) + " in " + span_text(span) + ", of " + std::to_string(apps.size()) + (apps.size() == 1 ? " app" : " apps"));
  text += row("rate", decimal(double(all.requests) / seconds, 2) + " /s, most in a second " + grouped(*std::max_element(by_second.begin(), by_second.end())));
  text += row("tokens", grouped(all.input) + " in prompts, " + grouped(all.output) + " in answers (" + percent(double(all.input) / double(all.input + all.output)) + " prompts)");
  text += lengths_row("prompt", std::move(inputs)) + lengths_row("answer", std::move(outputs)) + rates(trace) + "\n";
  return text + apps_table(std::move(apps), all.requests, all.input + all.output);
}

}  // namespace sangam::sim
