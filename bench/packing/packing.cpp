// How near packings come to the fewest workers, how long they take, and what each policy moves.
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "actors/placement/placement_options.hpp"
#include "actors/placement/search.hpp"
#include "bench/packing/churn.hpp"
#include "bench/report.hpp"
#include "tests/unit/placement/random_problems.hpp"

using namespace sangam;

namespace {

constexpr std::size_t kInstances = 1'000;
constexpr std::size_t kManyModels = 5'000;
const std::string kFolder = SANGAM_SOURCE_DIR "/build/packing";

/// Milliseconds that this thread has worked.
double worked() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
}

std::size_t used(const Packing& packing) {
  return std::size_t(std::count_if(packing.begin(), packing.end(), [](const auto& items) { return !items.empty(); }));
}

/// 10 to 22 models, of each mix in turn.
PackingProblem instance(std::size_t number) {
  std::mt19937_64 random(number + 1);
  return exact::random_problem(exact::kMixes[number % 4], 10 + random() % 13, random);
}

template <class Values>
void write_list(std::ofstream& file, const Values& values) {
  file << '[';
  for (std::size_t i = 0; i < values.size(); ++i) file << (i > 0 ? "," : "") << values[i];
  file << ']';
}

void write_instance(std::ofstream& file, const PackingProblem& problem) {
  file << "{\"own\":[";
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    file << (i > 0 ? "," : "");
    write_list(file, problem.items[i].own);
  }
  file << "],\"pieces\":";
  write_list(file, problem.pieces);
  file << ",\"has\":[";
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    file << (i > 0 ? "," : "");
    write_list(file, problem.items[i].pieces);
  }
  file << "],\"models_max\":" << problem.models_max << "}\n";
}

/// The fewest workers of each instance that was solved to optimality; empty where the solver cannot be had.
std::map<std::size_t, std::size_t> solve_exactly() {
  mkdir(SANGAM_SOURCE_DIR "/build", 0777);
  mkdir(kFolder.c_str(), 0777);
  {
    std::ofstream file(kFolder + "/instances.jsonl");
    file.precision(17);
    for (std::size_t number = 0; number < kInstances; ++number) write_instance(file, instance(number));
  }
  std::map<std::size_t, std::size_t> optima;
  const std::string command = "python3 " SANGAM_SOURCE_DIR "/bench/packing/exact.py " + kFolder;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    std::size_t number = 0;
    std::size_t workers = 0;
    int is_optimal = 0;
    while (std::fscanf(pipe, "%zu %zu %d", &number, &workers, &is_optimal) == 3) {
      if (is_optimal != 0) optima[number] = workers;
    }
    pclose(pipe);
  }
  return optima;
}

/// One policy's packings of all solved instances beside the optima.
void report_bins(const Report& report, const PlacementPolicy& policy, const std::map<std::size_t, std::size_t>& optima) {
  std::size_t workers = 0;
  std::size_t fewest = 0;
  std::size_t equal = 0;
  double longest = 0.0;
  for (const auto& [number, optimum] : optima) {
    const PackingProblem problem = instance(number);
    const double start = worked();
    const std::size_t count = used(policy.pack(problem, PlacementOptions{}.search_effort));
    longest = std::max(longest, worked() - start);
    workers += count;
    fewest += optimum;
    if (count == optimum) ++equal;
    if (count < optimum) std::cerr << "instance " << number << ": fewer than the optimum\n";
  }
  const bool is_ours = policy.name == "potential";
  const std::string name = std::string(policy.name) + ", ";
  const double share = double(equal) / double(optima.size());
  report.row({name + "instances with the fewest workers", share, "", "HiGHS; Janus's paper: 0.9999 on its trace",
              is_ours ? ">= 0.9999" : "", !is_ours || share >= 0.9999});
  report.row({name + "workers over the fewest", double(workers) / double(fewest), "", "HiGHS: 1", "", true});
  report.row({name + "longest search", longest, "ms", "", "", true});
}

void measure_bins(const Report& report) {
  const auto optima = solve_exactly();
  report.row({"instances solved to optimality, 10 to 22 models", double(optima.size()), "",
              std::to_string(kInstances) + " instances", "", !optima.empty()});
  if (optima.empty()) return;
  for (const PlacementPolicy& policy : {potential_policy(), first_fit_decreasing_policy()}) {
    report_bins(report, policy, optima);
  }
}

void measure_time(const Report& report) {
  for (const exact::Mix mix : exact::kMixes) {
    std::mt19937_64 random(7);
    const PackingProblem problem = exact::random_problem(mix, kManyModels, random);
    const char* name = mix == exact::Mix::uniform ? "uniform" : mix == exact::Mix::skewed ? "skewed"
                       : mix == exact::Mix::small ? "small" : "sharing";
    double least = 1e9;
    std::size_t bins = 0;
    for (int i = 0; i < 3; ++i) {
      const double start = worked();
      bins = used(pack_anew(problem, PlacementOptions{}.search_effort));
      least = std::min(least, worked() - start);
    }
    report.row({std::string("5,000 models placed, ") + name, least, "ms", "", "<= 50", least <= 50.0});
    report.row({std::string("workers for them, ") + name, double(bins), "",
                "no fewer than " + std::to_string(bins_min(problem)), "", true});
  }
}

/// The four policies on the same half hour.
void measure_churn(const Report& report) {
  for (const PlacementPolicy& policy : {potential_policy(), first_fit_decreasing_policy(), static_policy(),
                                        periodic_repack_policy()}) {
    const ChurnResult result = churn(policy);
    const std::string name = std::string(policy.name) + ", about 120 models that come and go: ";
    report.row({name + "workers", result.workers, "", "", "", true});
    report.row({name + "moves per arrival", result.moves_per_arrival, "", "", "", true});
    report.row({name + "overloaded workers", result.overloaded, "", "", "", true});
    report.row({name + "decision p99", result.decision_p99, "ms", "", "", true});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Report report(argc, argv);
  measure_time(report);
  measure_churn(report);
  measure_bins(report);
}
