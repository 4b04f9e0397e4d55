// One model after the other: a bar, a file, a table.
#include "cli/profile/profile_command.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <random>

#include "cli/profile/measure.hpp"
#include "cli/progress_line.hpp"
#include "cli/report_files.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

void print(const Profile& profile, const fs::path& file) {
  std::printf("%s, %zu samples, R2 of step times %.4f, median error %.1f %%\n", profile.model.text().c_str(),
              profile.samples.size(), profile.costs.r2, 100.0 * profile.costs.error_median);
  for (const CostName& name : kCostNames) {
    const FittedCost& cost = profile.costs.*name.cost;
    std::printf("  %-14s %12.4g us  90 %% within %.4g to %.4g%s\n", std::string(name.what).c_str(), cost.value, cost.low,
                cost.high, cost.is_told() ? "" : "  cannot be told from nothing");
  }
  std::printf("  %-14s %12.4g us  beside steps, as the client of a lone stream sees it\n", "a later token", profile.between_steps_us);
  std::printf("  %-14s %12.4g us  beside its step, client to client\n", "a first token", profile.request_us);
  std::printf("  -> %s\n", file.c_str());
}

/// That the file can be written, and is no other model's: "a/b" and "a--b" are one file.
Result<void> check_name(const fs::path& file, const ModelId& model) {
  if (!fs::exists(file)) {
    const std::string trial = file.string() + ".part";
    auto writable = check_writable({trial});
    std::error_code ignored;
    fs::remove(trial, ignored);
    return writable;
  }
  const auto there = read_profile(file);
  if (!there || there->model == model) return check_writable({file.string()});
  return make_error(ErrorCode::invalid_input, file.string() + ": is the profile of " + there->model.text() + "; choose another folder with --store");
}

}  // namespace

Result<void> profile_models(const ProfileOptions& options) {
  const auto base = parse_http_base(options.url);
  if (!base) return base.error();
  std::error_code failure;
  fs::create_directories(options.store, failure);
  if (failure) return make_error(ErrorCode::exhausted, options.store + ": " + failure.message() + "; choose another folder with --store");
  for (const std::string& name : options.models) {
    const ModelId model(name);
    const fs::path file = profile_path(options.store, model);
    if (auto free = check_name(file, model); !free) return free;
    MeasureOptions measuring;
    measuring.key = options.key;
    measuring.rounds = options.rounds;
    measuring.streams = options.streams;
    measuring.seed = std::random_device{}();  // Prompts that no run before has left in the prefix cache.
    ProgressLine line;
    measuring.progress = [&](double share) { line.show(name + " " + progress_bar(share)); };
    const auto profile = measure(*base, model, measuring);
    if (!profile) return profile.error();
    const std::string text = profile_json(*profile);
    if (auto written = write_whole(file.string(), text); !written) return written;
    options.json ? void(std::cout << text << "\n") : print(*profile, file);
  }
  return {};
}

}  // namespace sangam
