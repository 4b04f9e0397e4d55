// How long the scheduler takes to decide, and how near its plans come to what is possible. Times are the
// thread's own, so that other work on the machine is not counted.
#include <time.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "actors/scheduler/scheduler_core.hpp"
#include "bench/report.hpp"
#include "tests/unit/scheduler/brute_force.hpp"

using namespace sangam;

namespace {

constexpr int kBacklog = 10'000;
constexpr int kWorkers = 64;

/// Milliseconds that this thread has worked.
double worked() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, std::size_t(share * double(values.size())))];
}

/// `run` several times; what a first run pays for cold caches is not counted.
template <class Run>
std::vector<double> times(int count, Run run) {
  std::vector<double> values;
  run();
  for (int i = 0; i < count; ++i) {
    const double start = worked();
    run();
    values.push_back(worked() - start);
  }
  return values;
}

ActorName worker(int w) { return ActorName("worker/" + std::to_string(w)); }

void make_ready(SchedulerCore& core, int workers, Outbox& out) {
  for (int w = 0; w < workers; ++w) {
    core.on(InstanceReady{worker(w), ModelId("m"), Incarnation{1}, 1'000'000, Tokens(1'000'000'000), 10'000.0, ""},
            Instant{}, out);
  }
}

Enqueued request(std::uint64_t id, std::int64_t tokens, Millis ttft_in) {
  return {RequestId{id}, 1, ModelId("m"), ServiceClass::deadline, 0, ttft_in, false, Tokens(tokens), Tokens(100)};
}

/// The policies themselves, on the whole backlog and on the part that one plan of the actor sees.
void measure_plans(Report& report) {
  std::mt19937_64 random(1);
  const exact::Problem problem = exact::random_problem({kWorkers, kBacklog, 1, 1.5, true}, random);
  const std::size_t seen = SchedulerOptions{}.plan_jobs_max;
  const PlanInput all{problem.jobs, problem.machines};
  const PlanInput part{std::span(problem.jobs).first(seen), problem.machines};
  const auto peer = percentile(times(50, [&] { (void)edf(part); }), 0.5);
  const std::string reference = "edf on the same jobs in this run: " + Report::number(peer) + " ms";
  const auto whole_ms = times(50, [&] { (void)lst_imh(all); });
  const auto part_ms = times(200, [&] { (void)lst_imh(part); });
  const auto whole_peer = percentile(times(20, [&] { (void)edf(all); }), 0.5);
  report.row({"lst_imh, all 10,000 jobs over 64 machines, p50", percentile(whole_ms, 0.5), "ms",
              "edf on the same jobs in this run: " + Report::number(whole_peer) + " ms", "", true});
  report.row({"lst_imh, the " + std::to_string(seen) + " earliest of them, p50", percentile(part_ms, 0.5), "ms",
              reference, "<= 2", percentile(part_ms, 0.5) <= 2.0});
  report.row({"lst_imh, the " + std::to_string(seen) + " earliest of them, p99", percentile(part_ms, 0.99), "ms",
              reference, "<= 2", percentile(part_ms, 0.99) <= 2.0});
}

/// A core with 10,000 requests waiting and 64 workers at work; each event comes when a new plan is due.
void measure_decisions(Report& report) {
  SchedulerCore core{SchedulerOptions{}};
  Outbox out;
  std::mt19937_64 random(2);
  std::uint64_t id = 0;
  make_ready(core, kWorkers, out);
  const auto enqueue = [&](Instant now) {
    core.on(request(++id, 200 + std::int64_t(random() % 4000), Millis(60'000 + random() % 60'000)), now, out);
  };
  while (core.waiting() < kBacklog) enqueue(Instant{});
  std::vector<double> decisions;
  Instant now{};
  std::vector<Dispatch> in_work;
  for (int i = 0; i < 400; ++i) {
    now += Millis(3);
    for (const auto& letter : out.letters) {
      if (const auto* d = std::get_if<Dispatch>(&letter.message)) in_work.push_back(*d);
    }
    out.clear();
    const std::size_t pick = random() % in_work.size();
    const Dispatch d = in_work[pick];
    in_work.erase(in_work.begin() + std::ptrdiff_t(pick));
    const PrefillFinished finished{d.request,   1,           d.worker, ModelId("m"), d.estimated,
                                   d.estimated, Tokens(1000)};
    const double start = worked();
    core.on(finished, now, out);
    decisions.push_back(worked() - start);
    while (core.waiting() < kBacklog) enqueue(now);
  }
  for (const auto& [name, share] : {std::pair{"p50", 0.5}, std::pair{"p99", 0.99}}) {
    const double ms = percentile(decisions, share);
    report.row({std::string("one decision with 10,000 waiting over 64 workers, ") + name, ms, "ms", "", "<= 2",
                ms <= 2.0});
  }
  const auto quotes = times(2000, [&] {
    out.clear();
    core.on(AskQuote{RequestId{1}, ModelId("m"), ServiceClass::deadline, Tokens(1000), Tokens(100),
                     Millis(60'000 + random() % 60'000), ActorName("gateway/1")},
            now, out);
  });
  const double p99 = percentile(quotes, 0.99) * 1e3;
  report.row({"one quote with 10,000 waiting over 64 workers, p99", p99, "us", "", "<= 50", p99 <= 50.0});
}

/// Requests that come one by one to workers that have time: three events and one dispatch each.
void measure_idle_path(Report& report) {
  SchedulerCore core{SchedulerOptions{}};
  Outbox out;
  make_ready(core, kWorkers, out);
  std::vector<double> micros;
  constexpr std::uint64_t kRequests = 100'000;
  const double begin = worked();
  for (std::uint64_t id = 1; id <= kRequests; ++id) {
    const Instant now(Micros(std::int64_t(id) * 500));
    out.clear();
    const double start = worked();
    core.on(request(id, 100, Millis(1000)), now, out);
    micros.push_back((worked() - start) * 1e3);
    const Dispatch d = std::get<Dispatch>(out.letters.back().message);  // A quote may come before it.
    core.on(PrefillFinished{d.request, 1, d.worker, ModelId("m"), d.estimated, d.estimated, Tokens(100)}, now, out);
    core.on(RunEnded{d.request, 1, d.worker, ModelId("m"), FinishReason::stop, Tokens(1)}, now, out);
  }
  const double seconds = (worked() - begin) / 1e3;
  const double p99 = percentile(micros, 0.99);
  report.row({"from Enqueued to Dispatch on an idle worker of 64, p50", percentile(micros, 0.5), "us", "", "", true});
  report.row({"from Enqueued to Dispatch on an idle worker of 64, p99", p99, "us",
              "a quarter of the 200 us that a request may cost in one process", "<= 50", p99 <= 50.0});
  report.row({"events", 3.0 * double(kRequests) / seconds, "1/s", "", ">= 100000",
              3.0 * double(kRequests) / seconds >= 1e5});
}

/// Mean share of the exact optimum over small random backlogs.
void measure_share(Report& report) {
  for (const char* name : {"lst_imh", "edf", "fcfs", "round_robin", "least_loaded", "power_of_two"}) {
    const DispatchPolicy policy = dispatch_policy(name).value();
    double share = 0.0;
    constexpr int kInstances = 1000;
    for (std::uint64_t seed = 1; seed <= kInstances; ++seed) {
      std::mt19937_64 random(seed);
      const double load = 0.5 + 2.5 * double(seed) / kInstances;
      const exact::Problem problem =
          exact::random_problem({2 + int(seed % 2), 8 + int(seed % 2), 1, load, true}, random);
      const int best = exact::optimum(problem.machines, problem.jobs);
      const PrefillPlan plan = policy({problem.jobs, problem.machines, Instant::max(), seed});
      const int count = exact::on_time(plan, problem.machines, problem.jobs);
      share += best == 0 ? 1.0 : double(count) / best;
    }
    const bool is_ours = std::string(name) == "lst_imh";
    report.row({std::string(name) + ", mean share of the optimum, 1,000 backlogs at loads 0.5 to 3",
                share / kInstances, "", "exact optimum by exhaustion: 1", is_ours ? ">= 0.995" : "",
                !is_ours || share / kInstances >= 0.995});
  }
}

}  // namespace

int main(int argc, char** argv) {
  Report report(argc, argv);
  measure_plans(report);
  measure_decisions(report);
  measure_idle_path(report);
  measure_share(report);
}
