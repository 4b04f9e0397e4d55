// How much the outcome depends on what Janus does not publish.
#include "bench/janus/arms.hpp"
#include "sim/trace/w0.hpp"

namespace sangam {
namespace {

using janus::percent_of;

janus::Arm damage(double alpha, const sim::Trace& trace) {
  return {"damage threshold alpha " + Report::number(alpha), [alpha](sim::Scenario& s) { s.placement->damage_max = alpha; }, &trace, {}};
}

janus::Arm objective(double factor, const sim::Trace& trace) {
  return {"objectives times " + Report::number(factor), [factor](sim::Scenario& s) { s.clients.slo_factor = factor; }, &trace, {}};
}

janus::Arm attainment(double target, const sim::Trace& trace) {
  return {"sized for " + Report::number(100.0 * target) + " %", [target](sim::Scenario& s) { s.autoscaler.sizes.attainment = target; }, &trace, {}};
}

sim::Trace with_hold(std::uint64_t seed, double seconds) {
  sim::W0Options options;
  options.burst_hold_s = seconds;
  return sim::w0(seed, options);
}

sim::Trace with_first_share(std::uint64_t seed, double share) {
  sim::W0Options options;
  options.first_share = share;
  return sim::w0(seed, options);
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  Report report(argc, argv);
  const std::uint64_t seed = janus::seed_of(argc, argv);
  const sim::Trace day = sim::w0(seed);
  const sim::Trace other_day = sim::w0(seed + 1);
  const sim::Trace brief = with_hold(seed, 90.0);
  const sim::Trace lasting = with_hold(seed, 1'440.0);
  const sim::Trace zipf = with_first_share(seed, 0.426);
  const std::vector<janus::Arm> arms = {
      {"as in janus_w0", {}, &day, {}}, {"another seed", {}, &other_day, {}}, damage(0.3, day),       damage(0.7, day),
      objective(0.8, day),              objective(2.0, day),                  attainment(0.99, day), attainment(0.9999, day),
      {"bursts hold 90 s instead of 360", {}, &brief, {}}, {"bursts hold 1440 s", {}, &lasting, {}}, {"first app asks 42.6 % instead of 30", {}, &zipf, {}}};
  const auto results = janus::run_arms(arms);
  report.row({"seed", double(seed), "", "", "", true});
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const sim::Report& r = results[i].report;
    report.row({arms[i].name + ": tokens on time", percent_of(r.all.token_share()), "%", "", "", true});
    report.row({arms[i].name + ": tokens on time, worst app", r.worst_app() != nullptr ? percent_of(r.worst_app()->outcome.token_share()) : 0.0, "%", "", "", true});
    report.row({arms[i].name + ": device-hours", r.device_hours.value_or(0.0), "h", "", "", true});
  }
}
