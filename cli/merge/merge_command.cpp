// The shell around a merge: files, threads, a line of progress.
#include "cli/merge/merge_command.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iostream>
#include <optional>
#include <thread>

#include "cli/merge/merge_output.hpp"
#include "cli/merge/merge_page.hpp"
#include "cli/progress_line.hpp"
#include "cli/report_files.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

merging::MergeWatcher watcher(ProgressLine& line, Bytes original) {
  return {[&line](const std::string& phase, double share) { line.show(progress_bar(share) + " " + phase); },
          [&line, original](const merging::TrialPoint& trial, std::size_t number, Bytes best) {
            line.show(fmt::format("trial {}, {}: {:.2f} % saved so far; worst model {:+.2f} points {}", number + 1, trial.phase,
                                  100.0 * (1.0 - double(best.count()) / double(original.count())), -trial.drop_worst,
                                  trial.accepted ? "accepted" : "rejected"));
          }};
}

Result<merging::Trajectory> open_trajectory(Store& store, const Digest& run, bool resume, const std::string& folder) {
  auto trajectory = merging::Trajectory::open(store, run);
  if (!trajectory || resume || trajectory->size() == 0) return trajectory;
  return make_error(ErrorCode::invalid_input, folder + ": holds " + std::to_string(trajectory->size()) +
                                                  " trials of this merge; go on with them by --resume, or name another --state");
}

}  // namespace

Result<void> merge_pool(const MergeCommandOptions& options) {
  const auto file = read_merge_pool(options.pool);
  if (!file) return file.error();
  if (auto writable = check_writable({options.html}); !writable) return writable;
  const int threads = options.threads > 0 ? options.threads : std::max(1, int(std::thread::hardware_concurrency()));
  const std::string state = options.state.empty() ? options.pool + ".state" : options.state;
  auto store = Store::open(state);
  if (!store) return store.error();
  std::optional<Checkpoint> ancestor;
  if (!file->ancestor.empty()) {
    auto opened = Checkpoint::open(file->ancestor);
    if (!opened) return opened.error();
    ancestor.emplace(std::move(*opened));
  }
  const auto pool = open_merge_pool(*file, threads);
  if (!pool) return pool.error();
  merging::MergeOptions merge_options = file->options;
  merge_options.threads = threads;
  auto trajectory = open_trajectory(*store, merging::digest_of_run(**pool, merge_options, ancestor ? &*ancestor : nullptr), options.resume, state);
  if (!trajectory) return trajectory.error();
  merging::Shelf shelf(**pool, merge_options.merging, ancestor ? &*ancestor : nullptr);
  Result<merging::MergeOutcome> outcome = make_error(ErrorCode::internal, "not run");
  {
    ProgressLine line;
    outcome = merging::merge(shelf, merge_options, *trajectory, watcher(line, (*pool)->original()));
  }
  if (!outcome) return outcome.error();
  if (!options.output.empty()) {
    if (auto written = write_point(options.output, *file, shelf, *outcome); !written) return written;
  }
  if (!options.html.empty()) {
    if (auto written = write_report(options.html, merge_page(*file, **pool, *outcome)); !written) return written;
  }
  std::cout << (options.json ? merge_json(*file, *outcome) + "\n" : merge_table(*file, *outcome)) << std::flush;
  return {};
}

}  // namespace sangam
