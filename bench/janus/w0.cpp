// A production day on 768 devices: Sangam beside the ways of others, as Janus's main evaluation has it.
#include "bench/janus/arms.hpp"
#include "sim/trace/w0.hpp"
#include "sim/world/controls.hpp"

namespace sangam {
namespace {

using janus::percent_of;

/// What the paper publishes for the row, where it does.
std::string published(const std::string& name, const std::string& what) {
  if (name == "sangam" && what == "tokens") return "Janus: 99.4 % (its W0; trace not published)";
  if (name == "sangam" && what == "worst") return "Janus: 90.0 %";
  if (name == "sangam" && what == "hours") return "Janus: 13,440 of 18,432";
  if (name == "prism" && what == "tokens") return "Janus on Prism: 80 to 92 %";
  if (name == "prism_with_allocator" && what == "tokens") return "Janus on Prism with its allocator: 97.6 %";
  if (name == "prism_with_allocator" && what == "worst") return "Janus on Prism with its allocator: 57.2 %";
  return {};
}

void print(Report& report, const std::string& name, const janus::ArmResult& result) {
  const sim::Report& r = result.report;
  const bool ours = name == "sangam";
  const double tokens = percent_of(r.all.token_share());
  const double worst = r.worst_app() != nullptr ? percent_of(r.worst_app()->outcome.token_share()) : 0.0;
  const double hours = r.device_hours.value_or(0.0);
  report.row({name + ": tokens on time", tokens, "%", published(name, "tokens"), ours ? ">= 99" : "", !ours || tokens >= 99.0});
  report.row({name + ": tokens on time, mean of apps", percent_of(r.app_share_mean()), "%", "", "", true});
  report.row({name + ": tokens on time, worst app", worst, "%", published(name, "worst"), ours ? ">= 95" : "", !ours || worst >= 95.0});
  report.row({name + ": requests on time", percent_of(r.all.request_share()), "%", "", "", true});
  report.row({name + ": goodput", r.rate_of(r.all.e2e_on_time), "requests/s", ours ? "Janus: 400 to 500 by day, 620 at most" : "", "", true});
  report.row({name + ": device-hours", hours, "h", published(name, "hours"), ours ? "<= 12000" : "", !ours || hours <= 12'000.0});
}

/// Prism has a pool of given size; this one has a few more device-hours than Sangam takes of the whole fleet.
void prism_on_fewer(sim::Scenario& scenario) {
  sim::set_control(scenario, "prism").value();
  scenario.workers = {{1, 158}, {4, 40}, {16, 10}};
}

double lowest_window(const sim::Report& report) {
  double lowest = 100.0;
  for (const sim::WindowOutcome& window : report.windows) {
    if (const sim::Share share = window.outcome.token_share()) lowest = std::min(lowest, percent_of(share));
  }
  return lowest;
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  Report report(argc, argv);
  const std::uint64_t seed = janus::seed_of(argc, argv);
  const sim::Trace trace = sim::w0(seed);
  std::vector<janus::Arm> arms;
  for (const char* name : {"sangam", "prism_with_allocator", "prism", "blitzscale", "blitzscale_with_placement", "serverless", "serverless_with_placement"}) {
    arms.push_back({name, [name](sim::Scenario& s) { sim::set_control(s, name).value(); }, &trace, {}});
  }
  arms.push_back({"prism on 478 devices", prism_on_fewer, &trace, {}});
  const std::vector<janus::ArmResult> results = janus::run_arms(arms);
  report.row({"seed", double(seed), "", "", "", true});
  report.row({"requests", double(trace.requests.size()), "", "Janus: 603,000", "", true});
  for (std::size_t i = 0; i < arms.size(); ++i) print(report, arms[i].name, results[i]);
  report.row({"sangam: tokens on time, worst minute", lowest_window(results[0].report), "%", "Janus: about 90 in the jump", "", true});
  report.row({"sangam: time to simulate, beside another arm", results[0].seconds, "s", "", "<= 60", results[0].seconds <= 60.0});
}
