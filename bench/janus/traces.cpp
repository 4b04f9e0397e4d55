// Recorded days by path: bench/run janus_traces FILE[=TIME_SCALE[=WORKERS]]... Every app is a fine-tune of one 8 B base.
#include <charconv>
#include <filesystem>

#include "bench/janus/arms.hpp"
#include "bench/processes.hpp"
#include "sim/trace/trace_file.hpp"

namespace sangam {
namespace {

using janus::percent_of;

/// A trace, by how much its day was pressed, and how many workers of one device there are; 0: the fleet of W0.
struct Recorded {
  std::string path;
  double time_scale = 1.0;
  std::int64_t workers = 0;
  sim::Trace trace;
};

template <class Number>
Number number_of(const std::string& text, const std::string& argument) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || !(number > 0)) {
    give_up(argument + ": write FILE=TIME_SCALE=WORKERS, as day.csv.gz=48 or hour.csv.gz=1=64, with numbers above 0");
  }
  return number;
}

Recorded recorded(const std::string& argument) {
  Recorded out;
  const auto first = argument.find('=');
  out.path = argument.substr(0, first);
  if (first != std::string::npos) {
    const auto second = argument.find('=', first + 1);
    out.time_scale = number_of<double>(argument.substr(first + 1, second - first - 1), argument);
    if (second != std::string::npos) out.workers = number_of<std::int64_t>(argument.substr(second + 1), argument);
  }
  auto trace = sim::read_trace(out.path);
  if (!trace) give_up(trace.error().context);
  out.trace = std::move(*trace);
  return out;
}

void set(sim::Scenario& scenario, const Recorded& day) {
  scenario.time_scale = day.time_scale;
  scenario.models.clear();
  scenario.clients.models.clear();
  for (const sim::BaseSpec& base : sim::w0_bases()) {
    if (base.name != "dense-8b") continue;
    for (const std::string& app : day.trace.apps) {
      scenario.models.push_back(sim::fine_tune(ModelId(app), base, scenario.device));
      scenario.clients.models.emplace_back(app);
    }
  }
  if (day.workers > 0) scenario.workers = {{1, day.workers}};
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  const Report report(argc, argv);
  std::vector<Recorded> days;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') days.push_back(recorded(argv[i]));
  }
  if (days.empty()) give_up("name traces: bench/run janus_traces day.csv.gz=48 hour.csv.gz=1=64 (FILE=TIME_SCALE=WORKERS)");
  std::vector<janus::Arm> arms;
  for (const Recorded& day : days) {
    arms.push_back({std::filesystem::path(day.path).filename().string(), [&day](sim::Scenario& s) { set(s, day); }, &day.trace, {}});
  }
  const auto results = janus::run_arms(arms);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const sim::Report& r = results[i].report;
    const double tokens = percent_of(r.all.token_share());
    const double worst = r.worst_app() != nullptr ? percent_of(r.worst_app()->outcome.token_share()) : 0.0;
    report.row({arms[i].name + ": requests", double(days[i].trace.requests.size()), "", "", "", true});
    report.row({arms[i].name + ": tokens on time", tokens, "%", "", ">= 99", tokens >= 99.0});
    report.row({arms[i].name + ": tokens on time, worst app", worst, "%", "", ">= 95", worst >= 95.0});
    report.row({arms[i].name + ": device-hours", r.device_hours.value_or(0.0), "h", "of " + Report::number(r.device_hours_static.value_or(0.0)), "", true});
  }
}
