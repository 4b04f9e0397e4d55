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

  std::vector<std::string> notes() const override { return runner_->notes(); }
  std::vector<ModelId> adopted() const override { return runner_->adopted(); }
  Result<void> begin(const Move& move) override {
    moving_ = move;
    return runner_->begin(move);
  }
  Result<bool> advance(bool others_wait) override {
    auto done = runner_->advance(others_wait);
    if (!done || !*done || moving_.target != Residency::active) return done;
    const LoadedInstance loaded = runner_->instance(moving_.model);
    std::string& entered = entered_[moving_.model];
    if (entered == loaded.weights_digest) return done;  // Woken, not read anew.
    if (auto written = enter(moving_.model, loaded); !written) return take_back(written.error());
    entered = loaded.weights_digest;
    return done;
  }
  void abandon() override { runner_->abandon(); }
  std::vector<Phase> phases() const override { return runner_->phases(); }
  std::vector<ModelId> take_demoted() override { return runner_->take_demoted(); }
  bool would_fit(const ModelId& model, std::span<const ModelId> asleep) const override {
    return runner_->would_fit(model, asleep);
  }
  Footprint footprint(const ModelId& model) const override { return runner_->footprint(model); }
  WorkerMemory memory() const override { return runner_->memory(); }
  LoadedInstance instance(const ModelId& model) const override {
    LoadedInstance instance = runner_->instance(model);
    if (const auto warning = warnings_.find(model); warning != warnings_.end())
      instance.warnings.push_back(warning->second);
    return instance;
  }
  ModelTable table(const ModelId& model) const override { return runner_->table(model); }
  Tokens kv_capacity(const ModelId& model) const override { return runner_->kv_capacity(model); }
  Result<void> add(const Run& run) override { return runner_->add(run); }
  Result<void> add_prefill(const Run& run) override { return runner_->add_prefill(run); }
  std::vector<ReserveKv> take_begun() override { return runner_->take_begun(); }
  Result<KvPlace> kv_place(const Run& run) const override { return runner_->kv_place(run); }
  void let_go(RequestId request) override { runner_->let_go(request); }
  Result<void> reserve_kv(const ReserveKv& wish) override { return runner_->reserve_kv(wish); }
  KvPulled pull_kv() override { return runner_->pull_kv(); }
  void drop_kv(RequestId request) override { runner_->drop_kv(request); }
  Result<void> take_over(const HandOver& offered) override { return runner_->take_over(offered); }
  void cancel(RequestId request) override { runner_->cancel(request); }
  bool has_work() const override { return runner_->has_work(); }
  StepOutcome step() override { return runner_->step(); }
  InstanceStatus status(const ModelId& model) const override { return runner_->status(model); }

 private:
  /// What cannot be written down does not serve.
  Error take_back(Error error) {
    if (!runner_->begin({moving_.model, Residency::cold, {}})) return error;
    for (Result<bool> done = false; done && !*done;) done = runner_->advance(false);
    return error;
  }

  Result<void> enter(const ModelId& model, const LoadedInstance& loaded) {
    const fs::path& folder = folders_.at(model);
    const auto weights = digest_from_hex(loaded.weights_digest);
    // Weights that came from another host may have no folder here that can be read.
    const auto config = loaded.config_digest.empty() ? digest_of_file(folder / "config.json") : digest_from_hex(loaded.config_digest);
    const auto former = catalog_.find(model);
    if (!weights) return weights.error();
    if (!config) return config.error();
    if (!former) return former.error();
    const auto now = wall_clock();
    warnings_.erase(model);
    CatalogEntry entry{folder.string(), *weights, *config, weight_bytes(folder), now, now};
    if (*former) {
      entry.first_seen = (*former)->first_seen;
      if ((*former)->weights != entry.weights) {
        warnings_[model] = "the weights are not those of the last load, " + hex_of((*former)->weights);
      }
    }
    return catalog_.put(model, entry);
  }

  std::unique_ptr<Runner> runner_;
  std::map<ModelId, fs::path> folders_;
  Catalog catalog_;
  Move moving_;
  std::map<ModelId, std::string> entered_;  ///< The weights that the catalog has from here.
  std::map<ModelId, std::string> warnings_;
};

}  // namespace

std::unique_ptr<Runner> keep_catalog(std::unique_ptr<Runner> runner, std::map<ModelId, fs::path> folders, Store& store) {
  return std::make_unique<CatalogRunner>(std::move(runner), std::move(folders), store);
}

}  // namespace sangam
