// What each pool is worth, and how fast the fleet is itself again after a burst.
#include <algorithm>
#include <map>

#include "bench/janus/arms.hpp"
#include "sim/trace/w0.hpp"
#include "sim/trace/w0_apps.hpp"
#include "sim/world/controls.hpp"

namespace sangam {
namespace {

using janus::percent_of;

constexpr std::int64_t kJump = 60;  // Seconds.
constexpr std::int64_t kEnd = 120;
constexpr double kShared[] = {0.6, 0.8};

/// One app of W0 at a steady 20 requests a second that jumps to eight times as many within 5 s.
sim::Trace burst() {
  sim::Trace trace;
  for (const sim::App& app : sim::w0_apps()) trace.apps.push_back(app.name);
  double at = 0.0;
  while (at < double(kEnd)) {
    const double rise = std::clamp((at - double(kJump)) / 5.0, 0.0, 1.0);
    trace.requests.push_back({Micros(std::int64_t(at * 1e6)), 3, Tokens(328), Tokens(7)});
    at += 1.0 / (20.0 * (1.0 + 7.0 * rise));
  }
  return trace;
}

/// Seconds from the jump until every later second has at least 95 % of its requests on time.
double recovery(const janus::ArmResult& result) {
  std::map<std::int64_t, std::pair<int, int>> seconds;
  for (const sim::RequestRecord& record : result.measured.records) {
    auto& [all, good] = seconds[record.arrival.count() / 1'000'000];
    ++all;
    good += record.code == ErrorCode::none && record.late == Tokens(0);
  }
  std::int64_t last_bad = kJump;
  for (const auto& [second, counts] : seconds) {
    if (second >= kJump && counts.second < 0.95 * counts.first) last_bad = second + 1;
  }
  return double(last_bad - kJump);
}

void print_shared(Report& report, const std::string& name, const janus::ArmResult& result) {
  const sim::Report& day = result.report;
  const auto wakes = double(std::max<std::int64_t>(result.wake_ups.count, 1));
  const double worst = day.worst_app() != nullptr ? percent_of(day.worst_app()->outcome.token_share()) : 0.0;
  report.row({name + ": tokens on time", percent_of(day.all.token_share()), "%", "", "", true});
  report.row({name + ": tokens on time, worst app", worst, "%", "", "", true});
  report.row({name + ": device-hours", day.device_hours.value_or(0.0), "h", "", "", true});
  report.row({name + ": models on a worker in use", result.models_on, "", "", "", true});
  report.row({name + ": wake-ups", double(result.wake_ups.count), "", "", "", true});
  report.row({name + ": mean time of a wake-up", double(result.wake_ups.took.count()) / 1e6 / wakes, "s", "", "", true});
  report.row({name + ": mean bytes of a wake-up", double(result.wake_ups.copied.count()) / 1e9 / wakes, "GB", "", "", true});
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  Report report(argc, argv);
  const std::uint64_t seed = janus::seed_of(argc, argv);
  const sim::Trace trace = sim::w0(seed);
  const sim::Trace jump = burst();
  const std::vector<std::pair<std::string, std::string>> pools = {
      {"sangam", "Janus, both pools: 97.8 %"}, {"elastic_only", "Janus, elastic only: 59.0 %"}, {"steady_only", "Janus, steady only: 37.1 %"}};
  std::vector<janus::Arm> arms;
  for (const auto& [name, reference] : pools) {
    const auto set = [name = name](sim::Scenario& s) { sim::set_control(s, name).value(); };
    arms.push_back({name, set, &trace, {}});
    arms.push_back({name, set, &jump, {}});
  }
  const std::size_t first_shared = arms.size();
  for (const double share : kShared) {
    const std::string name = "sangam, fine-tunes share " + Report::number(100.0 * share) + " % of their weights";
    arms.push_back({name, [share](sim::Scenario& s) { s.shared_share = share; }, &trace, {}});
  }
  const auto results = janus::run_arms(arms);
  report.row({"seed", double(seed), "", "", "", true});
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::string& name = pools[i].first;
    const sim::Report& day = results[2 * i].report;
    report.row({name + ": tokens on time", percent_of(day.all.token_share()), "%", pools[i].second, "", true});
    report.row({name + ": device-hours", day.device_hours.value_or(0.0), "h", "", "", true});
    const double seconds = recovery(results[2 * i + 1]);
    const bool ours = name == "sangam";
    report.row({name + ": recovery after a jump to 8 times the rate", seconds, "s", ours ? "Janus: about 9 s" : "", ours ? "<= 3" : "", !ours || seconds <= 3.0});
  }
  print_shared(report, "sangam, fine-tunes share nothing", results[0]);
  for (std::size_t i = first_shared; i < arms.size(); ++i) print_shared(report, arms[i].name, results[i]);
}
