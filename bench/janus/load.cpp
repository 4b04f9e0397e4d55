// More load than the fleet was made for: two minutes of the morning's jump at one, two and three times the rate.
#include "actors/scheduler/policies.hpp"
#include "bench/janus/arms.hpp"
#include "sim/trace/w0.hpp"

namespace sangam {
namespace {

using janus::percent_of;

constexpr Micros kBegin = Seconds(660);
constexpr Micros kWarm = Seconds(30);
constexpr Micros kEnd = Seconds(780);

struct Way {
  std::string name;
  DispatchPolicy policy;
  bool requeues;
  std::string published[3];
  double targets[3];
};

std::vector<Way> ways() {
  return {{"lst_imh, serves what is late behind the others", lst_imh, true, {"", "Janus, requeue: 91.2 %", "Janus, requeue: 47.0 %"}, {0, 95, 75}},
          {"lst_imh, refuses what would be late", lst_imh, false, {"", "Janus, no requeue: 92.4 %", "Janus, no requeue: 63.6 %"}, {0, 0, 0}},
          {"round_robin", round_robin, true, {"", "Janus, round robin: 64.8 %", ""}, {0, 0, 0}},
          {"least_loaded", least_loaded, true, {"", "Janus, least load: 70.2 %", ""}, {0, 0, 0}}};
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  Report report(argc, argv);
  const std::uint64_t seed = janus::seed_of(argc, argv);
  const sim::Trace once = sim::between(sim::w0(seed), kBegin, kEnd);
  std::vector<sim::Trace> traces;
  for (double rate : {1.0, 2.0, 3.0}) {
    sim::TraceScaling scaling;
    scaling.rate = rate;
    scaling.seed = seed;
    traces.push_back(sim::scaled(once, scaling).value());
  }
  std::vector<janus::Arm> arms;
  for (const Way& way : ways()) {
    for (const sim::Trace& trace : traces) {
      arms.push_back({way.name, [p = way.policy, r = way.requeues](sim::Scenario& s) {
                        s.scheduler.policy = p;
                        s.clients.requeue_when_late = r;
                      }, &trace, kWarm});
    }
  }
  const auto results = janus::run_arms(arms);
  report.row({"seed", double(seed), "", "", "", true});
  std::size_t i = 0;
  for (const Way& way : ways()) {
    for (std::size_t load = 0; load < 3; ++load, ++i) {
      const double share = percent_of(results[i].report.all.token_share());
      const double target = way.targets[load];
      report.row({way.name + ", load " + std::to_string(load + 1) + "x: tokens on time", share, "%", way.published[load],
                  target > 0 ? ">= " + Report::number(target) : "", share >= target});
    }
  }
}
