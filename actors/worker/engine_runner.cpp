// Where the worker meets the engine and the clock.
#include "actors/worker/engine_runner.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/worker/kv_exchange.hpp"
#include "gpu/engine/engine.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/memory/restore.hpp"
#include "gpu/residency/model_stock.hpp"

namespace sangam {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a move, between two steps: some milliseconds of copying while streams wait, as much as is quick otherwise.
constexpr Bytes kPieceBesideOthers{8 << 20};
constexpr Bytes kPieceAlone{256 << 20};
constexpr double kProbeSeconds = 0.05;
/// For what other hosts send, while nobody here waits for a step: letters wait behind it.
constexpr Millis kWaitForOthers{5};

#ifdef SANGAM_POISON_PAGES
const PagePoolRules kPoolRules{.poison = true};
#else
const PagePoolRules kPoolRules;
#endif

/// Prefills some tokens in pages that it takes and gives back. The first run warms caches and buffers. A model that
/// is slow at few tokens is not made to wait for many: its first client waits behind this.
double prefill_rate(Model& model, PagePool& pool, Tokens most) {
  const std::int64_t per_page = model.tokens_per_page(pool.arena().page_bytes);
  std::int64_t count = std::min({most.count(), std::int64_t{128}, model.config().context});
  const Pages wanted((count + per_page - 1) / per_page);
  const auto reserved = pool.reserve_kv(std::min(wanted, pool.pages().free()));
  std::vector<PageId> pages;
  for (const PageExtent& extent : reserved ? reserved->extents() : std::span<const PageExtent>()) {
    for (std::int64_t page = 0; page < extent.count.count(); ++page)
      pages.push_back(PageId(std::int64_t(extent.first) + page));
  }
  count = std::min(count, std::int64_t(pages.size()) * per_page);
  const std::vector<TokenId> tokens(std::size_t(count), TokenId{0});
  const auto few = std::min<std::size_t>(tokens.size(), 8);
  double rate = 0;
  for (const std::size_t length : {few, few, tokens.size()}) {
    if (length == 0 || (length > few && rate > 0 && double(length) / rate > kProbeSeconds)) break;
    const SequenceSlice slice{std::span(tokens).first(length), 0, pages, false};
    const auto began = Clock::now();
    model.forward({&slice, 1}, pool.arena(), {});
    rate = double(length) / std::max(std::chrono::duration<double>(Clock::now() - began).count(), 1e-9);
  }
  return rate;
}

Micros since(Clock::time_point began) {
  return std::chrono::duration_cast<Micros>(Clock::now() - began);
}

/// The first 8 bytes.
std::uint64_t first_of(const Digest& digest) {
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < sizeof first; ++i) first = (first << 8) | digest.bytes[i];
  return first;
}

const std::map<std::string, PrefixSharing> kPrefixSharing{
    {"nobody", PrefixSharing::nobody}, {"tenant", PrefixSharing::tenant}, {"everyone", PrefixSharing::everyone}};

EngineOptions engine_options(const WorkerOptions& options) {
  EngineOptions engine;
  engine.running_max = options.running_max;
  engine.step_tokens = options.step_tokens;
  engine.prefix_sharing = kPrefixSharing.at(options.prefix_cache);
  engine.shared_step_max = std::chrono::duration_cast<Micros>(options.shared_step_max);
  return engine;
}

class EngineRunner final : public Runner {
 public:
  EngineRunner(const WorkerOptions& options, std::unique_ptr<Ops> ops, KeptMemory kept, BlobChannel* channel)
      : options_(options),
        channel_(channel),
        ops_(std::move(ops)),
        kept_(std::move(kept)),
        pool_(std::make_unique<PagePool>(kept_.take_device(), kPoolRules)),
        segments_(*pool_),
        engine_(engine_options(options), *pool_),
        exchange_(options_, ops_->name(), *pool_, engine_),
        stock_(
            {segments_, engine_, *ops_, &kept_, &shelf_,
             [this](Model& m) { return prefill_rate(m, *pool_, options_.step_tokens); }},
            options.host_bytes),
        notes_(kept_.notes()) {
    for (const auto& [model, folder] : options.models) stock_.add(model, folder);
    if (kept_.left()) take_over(*kept_.left());
    if (channel_ != nullptr) channel_->offer(options_.name, shelf_);
  }
  ~EngineRunner() override {
    if (channel_ != nullptr) channel_->withdraw(options_.name);
  }
  EngineRunner(const EngineRunner&) = delete;
  EngineRunner& operator=(const EngineRunner&) = delete;

  std::vector<std::string> notes() const override { return notes_; }

  std::vector<ModelId> adopted() const override {
    std::vector<ModelId> models;
    for (const auto& [model, folder] : options_.models) {
      if (stock_.is_adopted(model)) models.push_back(model);
    }
    return models;
  }

  Result<void> begin(const Move& move) override {
    phases_.clear();
    auto near = peers(move.sources);
    auto far = near.empty() && move.target == Residency::active ? pull(move) : nullptr;
    return timed([&] { return stock_.begin(move.model, move.target, std::move(near), std::move(far)); });
  }

  Result<bool> advance(bool others_wait) override {
    return timed([&] {
      return others_wait ? stock_.advance(kPieceBesideOthers) : stock_.advance(kPieceAlone, kWaitForOthers);
    });
  }

  void abandon() override { stock_.abandon(); }
  std::vector<Phase> phases() const override { return phases_; }
  std::vector<ModelId> take_demoted() override { return stock_.take_demoted(); }
  bool would_fit(const ModelId& model, std::span<const ModelId> asleep) const override {
    return stock_.would_fit(model, asleep);
  }

  Footprint footprint(const ModelId& model) const override {
    const ModelBytes& bytes = stock_.bytes(model);
    return {bytes.weights, bytes.missing, bytes.own, bytes.host};
  }

  WorkerMemory memory() const override {
    (void)shelf_.let_go();
    const PoolLedger ledger = pool_->ledger();
    const auto bytes = [&](Pages pages) { return Bytes(pages.count() * ledger.page.count()); };
    WorkerMemory memory;
    memory.pool = bytes(ledger.total);
    memory.weights = bytes(ledger.weights + ledger.reserved);
    memory.free = bytes(ledger.free);
    for (const auto& [model, pages] : ledger.models) {
      if (pages == ModelPages()) continue;
      memory.models.push_back({model, bytes(pages.kv), bytes(pages.cached)});
      memory.kv += bytes(pages.kv);
      memory.cached += bytes(pages.cached);
    }
    memory.shared = stock_.shared();
    memory.host = stock_.host().used();
    memory.host_max = stock_.host().max();
    return memory;
  }

  LoadedInstance instance(const ModelId& model) const override {
    const Blueprint& blueprint = stock_.blueprint(model);
    return {blueprint.prefill_tokens_per_second, blueprint.weights_digest,
            hex_of(digest_of(std::string_view(blueprint.config_text))), blueprint.warnings};
  }

  ModelTable table(const ModelId& model) const override {
    const Blueprint& blueprint = stock_.blueprint(model);
    const ModelConfig& config = blueprint.config;
    const KvLayout token{config.layers, config.kv_heads, config.head_dim, 1};
    std::map<Digest, Bytes> segments;
    for (const WantedSlot& slot : blueprint.slots) segments[slot.digest] = slot.bytes;
    ModelTable table;
    table.model = model;
    table.kv_per_token = Bytes(std::int64_t(token.bytes_per_token()));
    for (const auto& [digest, bytes] : segments) table.segments.push_back({first_of(digest), bytes});
    return table;
  }

  Tokens kv_capacity(const ModelId& model) const override { return engine_.kv_capacity(model); }
  Result<void> add(const Run& run) override { return engine_.add(run); }
  Result<void> add_prefill(const Run& run) override { return exchange_.add(run); }
  std::vector<ReserveKv> take_begun() override { return exchange_.take_begun(); }
  Result<KvPlace> kv_place(const Run& run) const override { return exchange_.place(run); }
  void let_go(RequestId request) override {
    exchange_.forget(request);
    (void)engine_.handed_over(request);
  }
  Result<void> reserve_kv(const ReserveKv& wish) override { return exchange_.reserve(wish); }
  KvPulled pull_kv() override { return exchange_.pull(engine_.has_work() ? kPieceBesideOthers : kPieceAlone); }
  void drop_kv(RequestId request) override { exchange_.drop(request); }
  Result<void> take_over(const HandOver& offered) override { return exchange_.take_over(offered); }
  void cancel(RequestId request) override {
    exchange_.forget(request);
    exchange_.drop(request);
    engine_.cancel(request);
  }
  bool has_work() const override { return engine_.has_work(); }

  StepOutcome step() override {
    const auto began = Clock::now();
    StepReport report = engine_.step();
    StepOutcome outcome;
    outcome.elapsed = since(began);
    engine_.charge(outcome.elapsed);
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
    status.prefix_queries = stats.count.prefix_queries;
    status.prefix_hits = stats.count.prefix_hits;
    status.steps = stats.steps;
    return status;
  }

 private:
  /// Of those that are left, the tables of our models; what else there is, is free.
  void take_over(const ManifestRecord& left) {
    RestoredTables restored = restore(segments_, left);
    notes_.insert(notes_.end(), restored.lost.begin(), restored.lost.end());
    for (const auto& [model, folder] : options_.models) {
      const auto table = restored.tables.find(model);
      const auto note = left.notes.find(model);
      if (table == restored.tables.end() || note == left.notes.end()) continue;
      stock_.adopt(model, std::move(table->second), weights_noted(note->second));
    }
  }

  /// Of the workers on this host that can be reached; from the others nothing is copied.
  ModelStock::Peers peers(const std::vector<ActorName>& workers) const {
    ModelStock::Peers peers;
    for (const ActorName& worker : workers) {
      auto peer = PeerWeights::open(options_.holder, worker.text(), options_.page_bytes);
      if (peer) peers.push_back(std::move(*peer));
    }
    return peers;
  }

  /// From the workers on other hosts; null where none of them can be reached.
  std::unique_ptr<WeightsPull> pull(const Move& move) const {
    WeightsPull::Sources sources;
    for (const ActorName& worker : move.sources) {
      auto opened = channel_ == nullptr ? make_error(ErrorCode::not_found, "no channel") : channel_->open(worker);
      if (opened) sources.push_back(std::move(*opened));
    }
    return sources.empty() ? nullptr : std::make_unique<WeightsPull>(move.model, std::move(sources));
  }

  /// Puts down what a piece of the move took under the name of its phase.
  template <class Piece>
  std::invoke_result_t<Piece> timed(Piece piece) {
    const auto began = Clock::now();
    const Bytes before = stock_.moved();
    std::string phase(stock_.phase());
    auto result = piece();
    if (phase.empty()) phase = "open";
    if (phases_.empty() || phases_.back().name != phase) phases_.push_back({phase, {}, {}});
    phases_.back().took += since(began);
    phases_.back().moved += stock_.moved() - before;
    return result;
  }

  WorkerOptions options_;
  BlobChannel* channel_;
  std::unique_ptr<Ops> ops_;
  KeptMemory kept_;
  std::unique_ptr<PagePool> pool_;
  SegmentStore segments_;
  WeightsShelf shelf_{*pool_};
  Engine engine_;
  KvExchange exchange_;
  ModelStock stock_;
  std::vector<std::string> notes_;
  std::vector<Phase> phases_;
};

}  // namespace

Result<std::unique_ptr<Runner>> make_engine_runner(const WorkerOptions& options, BlobChannel* channel) {
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
  if (!kPrefixSharing.contains(options.prefix_cache)) {
    return make_error(ErrorCode::invalid_input, options.name.text() + ": prefix_cache '" + options.prefix_cache +
                                                    "' is unknown; use nobody, tenant or everyone");
  }
  const auto isa = isa_named(options.isa);
  if (!isa) return isa.error();
  auto ops = make_cpu_ops({*isa, options.threads});
  if (!ops) return ops.error();
  auto kept = KeptMemory::open({options.holder, options.name.text(), {options.pool_bytes, options.page_bytes}});
  if (!kept) return kept.error();
  return std::unique_ptr<Runner>(new EngineRunner(options, std::move(*ops), std::move(*kept), channel));
}

}  // namespace sangam
