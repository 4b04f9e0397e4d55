// The catalog kept by a wrapper around the real runner: see the header.
#include "cli/catalog_runner.hpp"

#include <chrono>
#include <utility>

namespace sangam {
namespace {

namespace fs = std::filesystem;

UnixTime wall_clock() {
  return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
}

Bytes weight_bytes(const fs::path& folder) {
  std::int64_t total = 0;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().extension() == ".safetensors") total += static_cast<std::int64_t>(entry.file_size(failure));
  }
  return Bytes(total);
}

class CatalogRunner final : public Runner {
 public:
  CatalogRunner(std::unique_ptr<Runner> runner, std::map<ModelId, fs::path> folders, Store& store)
      : runner_(std::move(runner)), folders_(std::move(folders)), catalog_(store) {}

  Result<LoadedInstance> load(const ModelId& model) override {
    auto loaded = runner_->load(model);
    if (!loaded) return loaded;
    if (auto entered = enter(model, *loaded); !entered) return entered.error();
    return loaded;
  }

  Tokens kv_capacity(const ModelId& model) const override { return runner_->kv_capacity(model); }
  Result<void> add(const Run& run) override { return runner_->add(run); }
  void cancel(RequestId request) override { runner_->cancel(request); }
  bool has_work() const override { return runner_->has_work(); }
  StepOutcome step() override { return runner_->step(); }
  InstanceStatus status(const ModelId& model) const override { return runner_->status(model); }

 private:
  Result<void> enter(const ModelId& model, LoadedInstance& loaded) {
    const fs::path& folder = folders_.at(model);
    const auto weights = digest_from_hex(loaded.weights_digest);
    const auto config = digest_of_file(folder / "config.json");
    const auto former = catalog_.find(model);
    if (!weights) return weights.error();
    if (!config) return config.error();
    if (!former) return former.error();
    const auto now = wall_clock();
    CatalogEntry entry{folder.string(), *weights, *config, weight_bytes(folder), now, now};
    if (*former) {
      entry.first_seen = (*former)->first_seen;
      if ((*former)->weights != entry.weights) {
        loaded.warnings.push_back("the weights are not those of the last load, " + hex_of((*former)->weights));
      }
    }
    return catalog_.put(model, entry);
  }

  std::unique_ptr<Runner> runner_;
  std::map<ModelId, fs::path> folders_;
  Catalog catalog_;
};

}  // namespace

std::unique_ptr<Runner> keep_catalog(std::unique_ptr<Runner> runner, std::map<ModelId, fs::path> folders, Store& store) {
  return std::make_unique<CatalogRunner>(std::move(runner), std::move(folders), store);
}

}  // namespace sangam
