// The shell around a replay: files in, load out, report.
#include "cli/replay.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <unordered_map>

#include "cli/load_client.hpp"
#include "cli/offered_models.hpp"
#include "cli/replay_answer.hpp"
#include "cli/replay_plan.hpp"
#include "cli/progress_line.hpp"
#include "cli/report_files.hpp"
#include "cli/signals.hpp"
#include "sim/report/figures.hpp"
#include "sim/report/report_json.hpp"
#include "sim/report/svg.hpp"
#include "sim/report/table.hpp"
#include "sim/trace/trace_file.hpp"

namespace sangam {
namespace {

constexpr Micros kBehindNoted = Millis(20);

Result<sim::Trace> read(const ReplayOptions& options) {
  auto trace = sim::read_trace(options.trace);
  if (!trace) return trace;
  return part_of(std::move(*trace), options.part, {options.rate, options.time, options.seed, options.length}, options.trace);
}

std::string progress_of(const LoadProgress& progress, std::size_t all, Micros span, const sim::Outcome& outcome) {
  return progress_bar(double(progress.ended) / double(std::max<std::size_t>(all, 1))) + " " + sim::grouped(std::int64_t(progress.ended)) + " of " +
         sim::grouped(std::int64_t(all)) + ", " + std::to_string(progress.sent - progress.ended) + " open, tokens on time " +
         sim::percent(outcome.token_share()) + ", " + sim::span_text(progress.since_start) + " of " + sim::span_text(span);
}

class Replay final : public LoadSource {
 public:
  Replay(const ReplayOptions& options, sim::Trace trace, std::vector<std::string> models)
      : options_(options), trace_(std::move(trace)), models_(std::move(models)) {}

  std::size_t count() const override { return trace_.requests.size(); }
  Micros due(std::size_t call) const override { return trace_.requests[call].arrival; }

  LoadRequest request(std::size_t call) override {
    const auto& asked = trace_.requests[call];
    const auto slo = slo_of(asked);
    open_.try_emplace(call, asked, slo);
    LoadRequest message{"/v1/completions", completion_body(models_[asked.app], asked, options_.seed + call), {}};
    if (!options_.key.empty()) message.headers.emplace_back("Authorization", "Bearer " + options_.key);
    if (options_.deadlines) message.headers.emplace_back("x-slo-ttft-ms", std::to_string(slo.ttft.count()));
    return message;
  }

  void on_status(std::size_t call, int status) override {
    answered_ = true;
    open_.at(call).on_status(status);
  }
  void on_body(std::size_t call, std::string_view piece, Micros now) override { open_.at(call).on_body(piece, now); }

  void on_end(std::size_t call, const std::optional<Error>& failure, Micros now) override {
    auto& answer = open_.at(call);
    records_.push_back(answer.end(failure, now));
    outcome_.add(records_.back());
    if (problem_.empty()) problem_ = answer.problem();
    open_.erase(call);
  }

  bool on_tick(const LoadProgress& progress) override {
    line_.show(progress_of(progress, trace_.requests.size(), trace_.requests.back().arrival, outcome_));
    return !wait_for_signal(Millis(0));
  }

  /// Whether anything was answered at all.
  [[nodiscard]] bool answered() const { return answered_; }
  /// The first thing that went wrong.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  [[nodiscard]] sim::Report report(const LoadProgress& progress) const {
    sim::MeasuredRun run;
    run.title = std::filesystem::path(options_.trace).filename().string();
    run.apps = trace_.apps;
    run.records = records_;
    run.duration = std::min(trace_.requests.back().arrival, progress.since_start);  // Less where it was broken off.
    run.time_scale = options_.time;
    return sim::make_report(run);
  }

 private:
  sim::Slo slo_of(const sim::TraceRequest& asked) const {
    const auto times = [&](Millis objective) { return Millis(std::max<std::int64_t>(1, std::int64_t(double(objective.count()) * options_.slo))); };
    return {times(sim::ttft_slo_of(asked.input)), times(Millis(options_.tpot_ms))};
  }

  const ReplayOptions& options_;
  sim::Trace trace_;
  std::vector<std::string> models_;  ///< By app.
  ProgressLine line_;
  std::unordered_map<std::size_t, ReplayAnswer> open_;
  std::vector<sim::RequestRecord> records_;
  sim::Outcome outcome_;
  bool answered_ = false;
  std::string problem_;
};

void warn(const std::string& what) {
  std::cerr << "sangam: " << what << std::endl;
}

}  // namespace

Result<void> replay(const ReplayOptions& options) {
  const auto base = parse_http_base(options.url);
  if (!base) return base.error();
  const auto choices = parse_model_choices(options.models);
  if (!choices) return choices.error();
  if (auto writable = check_writable({options.json, options.svg}); !writable) return writable;
  auto trace = read(options);
  if (!trace) return trace.error();
  const auto offered = offered_models(*base, options.key);
  // A mesh that is away is part of what a replay measures, but only if we know for which models to ask it.
  if (!offered && offered.error().code != ErrorCode::unavailable) return offered.error();
  const auto known = offered ? *offered : std::vector<MeshModel>();
  if (!offered) warn(offered.error().context + "; what it does not answer counts as late");
  const auto models = models_of(trace->apps, *choices, known);
  if (!models) return models.error();
  if (const auto too_long = count_too_long(*trace, *models, known); too_long > 0) {
    warn(sim::grouped(std::int64_t(too_long)) + " of " + sim::grouped(std::int64_t(trace->requests.size())) +
         " requests do not fit the context of their model and will fail; a smaller --length makes all of them shorter");
  }
  Replay run(options, std::move(*trace), *models);
  const auto progress = run_load(*base, run, Seconds(options.timeout_s));
  if (!progress) return progress.error();
  const auto report = run.report(*progress);
  std::cout << sim::table_of(report) << std::flush;
  if (progress->behind_most > kBehindNoted) {
    warn("requests were sent up to " + sim::span_text(progress->behind_most) + " after they were due: this machine is too slow or too busy; their waits include it");
  }
  if (auto written = write_report(options.json, sim::json_of(report)); !written) return written;
  if (auto written = write_report(options.svg, sim::svg_of(std::array{report})); !written) return written;
  if (!run.answered()) return make_error(ErrorCode::unavailable, "nothing was answered, so all is late; " + run.problem());
  if (!run.problem().empty()) warn("the first failure: " + run.problem());
  return {};
}

}  // namespace sangam
