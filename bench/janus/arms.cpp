// Threads take the next arm until none is left; each simulation is single-threaded and deterministic.
#include "bench/janus/arms.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "sim/world/controls.hpp"

namespace sangam::janus {

sim::Scenario fleet() {
  sim::Scenario scenario = sim::w0_scenario();
  scenario.autoscaler.sizes.attainment = 0.997;
  scenario.clients.requeue_when_late = true;
  sim::set_control(scenario, "sangam").value();
  return scenario;
}

std::vector<ArmResult> run_arms(const std::vector<Arm>& arms) {
  std::vector<ArmResult> results(arms.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < arms.size(); i = next++) {
      sim::Scenario scenario = fleet();
      if (arms[i].set) arms[i].set(scenario);
      scenario.title = arms[i].name;
      const auto begin = std::chrono::steady_clock::now();
      sim::SimulatedRun run = sim::simulate(scenario, *arms[i].trace);
      results[i].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      results[i].models_on = run.models_on;
      results[i].wake_ups = run.wake_ups;
      sim::MeasuredRun& measured = run.measured;
      std::erase_if(measured.records, [&](const auto& record) { return record.arrival < arms[i].counts_from; });
      results[i].report = sim::make_report(measured);
      results[i].measured = std::move(measured);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::uint64_t seed_of(int argc, const char* const* argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--seed") return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return 1;
}

double percent_of(const sim::Share& share) { return 100.0 * share.value_or(0.0); }

}  // namespace sangam::janus
