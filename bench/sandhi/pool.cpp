// How much smaller the shipped pools become within two points, alone and by sharing, judged by items that no decision
// saw.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "cli/merge/merge_pool.hpp"
#include "storage/store/store.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

struct Arm {
  std::string name;
  merging::FormMenu menu;
  double target = 0.0;  ///< Percent saved; 0: none.
};

/// What a pool's file says, by hand: each form of its own ladder.
std::vector<Arm> arms(double all_target, double plain_target) {
  using enum RowCode;
  merging::FormMenu all{{b8, b4, b3, b2}, {b4, b3, b2}, {{}, {b1}, {b2}, {b3}}, false};
  merging::FormMenu alone{{b8, b4, b3, b2}, {}, {}, false};
  merging::FormMenu plain{{}, {std::nullopt}, {{}, {std::nullopt, 0, true}, {std::nullopt, 4}, {std::nullopt, 8}, {std::nullopt, 16}, {std::nullopt, 32}}, true};
  return {{"all forms", all, all_target}, {"quantised, shared with nobody", alone, 0.0}, {"bf16 only: shared, row affine, low rank", plain, plain_target}};
}

void run(const Report& report, const std::string& pool, const Arm& arm, const std::string& reference) {
  auto file = read_merge_pool(std::string(SANGAM_SOURCE_DIR) + "/configs/merge_" + pool + ".toml");
  if (!file) return report.row({file.error().context, 0.0, "", "", "", false});
  file->options.menu = arm.menu;
  const auto began = std::chrono::steady_clock::now();
  const auto models = open_merge_pool(*file, file->options.threads);
  const fs::path folder = fs::temp_directory_path() / ("sangam-sandhi-" + std::to_string(getpid()));
  auto store = Store::open(folder);
  auto trajectory = merging::Trajectory::open(*store, merging::digest_of_run(**models, file->options, nullptr));
  merging::Shelf shelf(**models, file->options.merging, nullptr);
  const auto outcome = merging::merge(shelf, file->options, *trajectory, {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!outcome) return report.row({outcome.error().context, 0.0, "", "", "", false});
  const std::string name = "pool " + pool + ", " + arm.name + ": ";
  const double saved = 100.0 * (1.0 - double(outcome->bytes.count()) / double(outcome->original.count()));
  double worst = -100.0;
  int certified = 0;
  for (const merging::Certificate& c : outcome->certificates) {
    worst = std::max(worst, c.counts.drop());
    certified += c.certified;
  }
  report.row({name + "bytes saved", saved, "%", reference, arm.target > 0.0 ? ">= " + Report::number(arm.target) : "", saved >= arm.target});
  report.row({name + "worst model's drop, shadow items", worst, "points", "budget 2", "<= 2", worst <= 2.0});
  for (std::size_t m = 0; m < outcome->certificates.size(); ++m) {
    const merging::Certificate& c = outcome->certificates[m];
    report.row({name + file->models[m].name + ", drop", c.counts.drop(), "points",
                "at most " + Report::number(c.bound) + " (95 %, " + std::to_string(c.counts.items) + " items)", "", true});
  }
  report.row({name + "certified", double(certified), "models", std::to_string(outcome->certificates.size()), "", true});
  report.row({name + "evaluations", double(outcome->evaluations), "", "", "", true});
  report.row({name + "time", seconds, "s", "", "", true});
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  const Report report(argc, argv);
  for (const Arm& arm : arms(75.0, 40.0)) run(report, "a", arm, "prototype 20 % in bf16; plain 4 bits 69.8 %");
  for (const Arm& arm : arms(85.0, 60.0)) run(report, "c", arm, "plain 4 bits 70.0 %, beyond the budget");
}
