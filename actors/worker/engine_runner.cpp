// Where the worker meets the engine and the clock.
#include "actors/worker/engine_runner.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "gpu/engine/engine.hpp"
#include "gpu/engine/loader.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"

namespace sangam {
namespace {

using Clock = std::chrono::steady_clock;

/// Prefills some tokens in pages that it takes and gives back. The first run warms caches and buffers.
double prefill_rate(Model& model, PagePool& pool, Tokens most) {
  const std::int64_t per_page = model.tokens_per_page(pool.arena().page_bytes);
  std::vector<PageId> pages;
  std::int64_t count = std::min({most.count(), std::int64_t{128}, model.config().context});
  while (std::int64_t(pages.size()) * per_page < count) {
    const auto page = pool.pages().take_lowest();
    if (!page) break;
    pages.push_back(*page);
  }
  count = std::min(count, std::int64_t(pages.size()) * per_page);
  const std::vector<TokenId> tokens(std::size_t(count), TokenId{0});
  double seconds = 0;
  for (const std::size_t length : {std::min<std::size_t>(tokens.size(), 8), tokens.size()}) {
    const SequenceSlice slice{std::span(tokens).first(length), 0, pages, false};
    const auto began = Clock::now();
    if (length > 0) model.forward({&slice, 1}, pool.arena(), {});
    seconds = std::chrono::duration<double>(Clock::now() - began).count();
  }
  for (const PageId page : pages) pool.pages().give_back({page, Pages{1}});
  return seconds > 0 ? double(count) / seconds : 0.0;
}

class EngineRunner final : public Runner {
 public:
  EngineRunner(const WorkerOptions& options, std::unique_ptr<Ops> ops, std::unique_ptr<PagePool> pool)
      : folders_(options.models.begin(), options.models.end()),
        step_tokens_(options.step_tokens),
        ops_(std::move(ops)),
        pool_(std::move(pool)),
        segments_(*pool_),
        engine_({options.running_max, options.step_tokens}, *pool_) {}

  Result<LoadedInstance> load(const ModelId& model) override {
    const auto folder = folders_.find(model);
    if (folder == folders_.end())
      return make_error(ErrorCode::not_found, "worker: no folder for model " + model.text());
    auto read = load_folder(folder->second, segments_, *ops_);
    if (!read) return read.error();
    Model& ready = *read->loaded.model;
    if (auto loaded = engine_.load(model, std::move(read->loaded)); !loaded) return loaded.error();
    return LoadedInstance{prefill_rate(ready, *pool_, step_tokens_), std::move(read->weights_digest),
                          std::move(read->warnings)};
  }

  Tokens kv_capacity(const ModelId& model) const override { return engine_.kv_capacity(model); }
  Result<void> add(const Run& run) override { return engine_.add(run); }
  void cancel(RequestId request) override { engine_.cancel(request); }
  bool has_work() const override { return engine_.has_work(); }

  StepOutcome step() override {
    const auto began = Clock::now();
    StepReport report = engine_.step();
    StepOutcome outcome;
    outcome.elapsed = std::chrono::duration_cast<Micros>(Clock::now() - began);
    outcome.produced = std::move(report.produced);
    for (const PrefillProgress& part : report.prefills)
      outcome.prefills.push_back({part.request, part.rows, part.done});
    return outcome;
  }

  InstanceStatus status(const ModelId& model) const override {
    const EngineStats stats = engine_.stats(model);
    InstanceStatus status;
    status.model = model;
    status.running = stats.count.running;
    status.waiting = stats.count.waiting;
    status.kv_used = stats.count.pages;
    status.kv_total = pool_->pages().total();
    status.preemptions = stats.count.preemptions;
    status.steps = stats.steps;
    return status;
  }

 private:
  std::map<ModelId, std::string> folders_;
  Tokens step_tokens_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<PagePool> pool_;
  SegmentStore segments_;
  Engine engine_;
};

}  // namespace

Result<std::unique_ptr<Runner>> make_engine_runner(const WorkerOptions& options) {
  if (options.running_max < 1 || options.waiting_max < 0 || options.step_tokens < Tokens{1}) {
    return make_error(ErrorCode::invalid_input,
                      options.name.text() + ": running_max=" + std::to_string(options.running_max) +
                          " and step_tokens=" + std::to_string(options.step_tokens.count()) +
                          " must be at least 1, waiting_max=" + std::to_string(options.waiting_max) +
                          " at least 0");
  }
  for (auto model = options.models.begin(); model != options.models.end(); ++model) {
    const auto same = [&](const auto& other) { return other.first == model->first; };
    if (std::any_of(options.models.begin(), model, same))
      return make_error(ErrorCode::invalid_input,
                        options.name.text() + ": model " + model->first.text() + " is configured twice");
  }
  const auto isa = isa_named(options.isa);
  if (!isa) return isa.error();
  auto ops = make_cpu_ops({*isa, options.threads});
  if (!ops) return ops.error();
  auto pool = PagePool::create({options.pool_bytes, options.page_bytes});
  if (!pool) return pool.error();
  return std::unique_ptr<Runner>(new EngineRunner(options, std::move(*ops), std::move(*pool)));
}

}  // namespace sangam
