// Settles the actors, lets the trace loose and looks at the fleet once in a while.
#include "sim/world/scenario.hpp"

#include <algorithm>

#include "actors/lifecycle/lifecycle_core.hpp"
#include "actors/oracle/oracle_core.hpp"
#include "actors/placement/placement_core.hpp"
#include "actors/queue/queue_core.hpp"
#include "sim/trace/w0_apps.hpp"
#include "sim/world/budgets.hpp"
#include "sim/world/world.hpp"

namespace sangam::sim {
namespace {

const ActorName kScheduler("scheduler");
const ActorName kLifecycle("lifecycle");
const ActorName kAutoscaler("autoscaler");
const ActorName kOracle("oracle");
const ActorName kPlacement("placement");

constexpr Bytes kPage{2 << 20};

std::vector<SimWorker*> settle_workers(const Scenario& scenario, Journal& journal, World& world) {
  std::vector<SimWorker*> workers;
  for (const auto& [devices, count] : scenario.workers) {
    for (std::int64_t i = 0; i < count; ++i) {
      SimWorkerOptions options;
      options.name = ActorName("worker/" + std::to_string(devices) + "-" + std::to_string(i + 1));
      options.device = scenario.device;
      options.devices = devices;
      options.shared_share = scenario.shared_share;
      options.state_hearers = {kAutoscaler, kPlacement};
      options.telemetry_hearers = {kAutoscaler, kOracle, kPlacement};
      if (i == 0) options.table_hearers = {kOracle, kPlacement};
      for (const ModelSpec& model : scenario.models) {
        if (model.devices != devices) continue;
        options.models.push_back(&model);
        if (scenario.fixed) options.active.push_back(model.id);
      }
      const ActorName name = options.name;
      auto worker = std::make_unique<SimWorker>(std::move(options), journal);
      workers.push_back(worker.get());
      world.settle(name, std::move(worker));
    }
  }
  return workers;
}

MeasuredRun measured_of(const Scenario& scenario, const Trace& trace) {
  MeasuredRun measured;
  measured.title = scenario.title;
  measured.apps = trace.apps;
  for (const auto& [devices, count] : scenario.workers) measured.devices_total += double(devices * count);
  measured.duration = trace.requests.empty() ? Micros(0) : trace.requests.back().arrival;
  measured.time_scale = scenario.time_scale;
  return measured;
}

/// Who has not ended when the world does has all tokens late.
RequestRecord record_of(const JournalEntry& entry, Instant now) {
  RequestRecord record;
  record.app = entry.app;
  record.arrival = Micros(std::int64_t(entry.arrival));
  if (entry.first >= 0.0) record.ttft = Micros(std::int64_t(entry.first - entry.arrival));
  record.end = entry.last >= 0.0 ? Micros(std::int64_t(entry.last)) : record.arrival;
  record.input = entry.input;
  record.output = entry.output;
  record.ttft_slo = Millis(std::int64_t(entry.ttft_slo / 1000.0));
  record.tpot_slo = Millis(std::int64_t(entry.tpot_slo / 1000.0));
  record.code = entry.ended ? entry.code : ErrorCode::expired;
  record.late = record.code == ErrorCode::none ? Tokens(entry.late) : entry.output;
  if (!entry.ended) record.end = Micros(now.time_since_epoch().count());
  return record;
}

template <class Core, class Options>
void settle_core(World& world, const ActorName& name, Options options) {
  auto resident = std::make_unique<Resident<Core>>(std::move(options));
  Core& core = resident->core();
  world.settle(name, std::move(resident));
  if constexpr (requires(Outbox out) { core.start(Instant{}, out); }) {
    world.act(name, [&](Instant now, Outbox& out) { core.start(now, out); });
  }
}

/// What a profile of the model would tell: its real costs. They are learned from telemetry all the same.
ModelPrior prior_of(const ModelSpec& model) {
  ModelPrior prior;
  prior.weights = model.weights;
  prior.kv_per_token = model.kv_per_token;
  prior.step_fixed = model.decode_fixed / 1e6;
  prior.prompt_fixed = std::max(0.0, model.prefill_fixed - model.decode_fixed) / 1e6;
  prior.prompt_token = model.prefill_per_token / 1e6;
  prior.sequence = model.decode_per_sequence / 1e6;
  prior.context_token = model.decode_per_context / 1e6;
  return prior;
}

void settle_planners(const Scenario& scenario, const Trace& trace, World& world) {
  OracleOptions oracle = scenario.oracle;
  oracle.hearers = {kAutoscaler};
  if (scenario.placement) oracle.hearers.push_back(kPlacement);
  for (const ModelSpec& model : scenario.models) oracle.priors[model.id] = prior_of(model);
  oracle.device = {scenario.device.flops, scenario.device.read_bytes_per_second, kPage};
  settle_core<OracleCore>(world, kOracle, oracle);
  AutoscalerOptions autoscaler = scenario.autoscaler;
  autoscaler.hearers = {kLifecycle};
  if (scenario.placement) {
    PlacementOptions placement = *scenario.placement;
    placement.tell = {kLifecycle, kAutoscaler};
    if (scenario.instances_by_work) {
      placement.instances = instances_by_work(scenario, trace, placement.policy.kv_budget.value_or(Bytes(0)));
    }
    settle_core<PlacementCore>(world, kPlacement, placement);
    autoscaler.hearers.push_back(kPlacement);
  }
  settle_core<AutoscalerCore>(world, kAutoscaler, autoscaler);
}

void settle_control(const Scenario& scenario, const Trace& trace, World& world) {
  settle_core<SchedulerCore>(world, kScheduler, scenario.scheduler);
  LifecycleOptions lifecycle;
  settle_core<LifecycleCore>(world, kLifecycle, lifecycle);
  for (const ModelSpec& model : scenario.models) {
    QueueOptions queue;
    queue.model = model.id;
    queue.waiting_requests_max = 100'000;
    queue.waiting_tokens_max = Tokens(1'000'000'000);
    queue.tenant_default.waiting_requests_max = queue.waiting_requests_max;
    queue.tenant_default.waiting_tokens_max = queue.waiting_tokens_max;
    settle_core<QueueCore>(world, queue_of(model.id), queue);
  }
  if (!scenario.fixed) settle_planners(scenario, trace, world);
}

}  // namespace

SimulatedRun simulate(const Scenario& scenario, const Trace& trace) {
  Journal journal(trace.requests.size());
  World world(scenario.letter_takes);
  const std::vector<SimWorker*> workers = settle_workers(scenario, journal, world);
  settle_control(scenario, trace, world);
  ClientOptions client_options = scenario.clients;
  client_options.served_hearers = {kOracle};
  auto clients = std::make_unique<Clients>(client_options, trace, journal);
  Clients& people = *clients;
  world.settle(client_options.name, std::move(clients));
  world.act(client_options.name, [&](Instant now, Outbox& out) { people.start(now, out); });

  SimulatedRun run;
  run.measured = measured_of(scenario, trace);
  const Micros end = run.measured.duration + scenario.after;
  std::int64_t models_on = 0;
  std::int64_t workers_on = 0;
  for (Micros at = scenario.sample_every; at <= end; at += scenario.sample_every) {
    world.run_until(Instant(at));
    std::int64_t devices = 0;
    for (const SimWorker* worker : workers) {
      if (worker->models_on() == 0) continue;
      devices += worker->devices();
      models_on += worker->models_on();
      ++workers_on;
    }
    run.measured.devices.push_back({at - scenario.sample_every, double(devices)});
    if (scenario.progress) scenario.progress(double(at.count()) / double(end.count()));
  }
  for (const JournalEntry& entry : journal.entries()) run.measured.records.push_back(record_of(entry, world.now()));
  if (workers_on > 0) run.models_on = double(models_on) / double(workers_on);
  for (const SimWorker* worker : workers) run.wake_ups += worker->wake_ups();
  run.letters = world.letters();
  run.complaints = world.complaints();
  return run;
}

Micros letter_takes_of(double request_us) {
  constexpr double kLetters = 4.0;  // Submit, Enqueued, Dispatch, Run.
  return Micros(std::int64_t(request_us / kLetters));
}

Scenario w0_scenario() {
  Scenario scenario;
  scenario.time_scale = 48.0;
  scenario.workers = {{1, 256}, {4, 64}, {16, 16}};
  const auto& bases = w0_bases();
  std::map<std::string, const BaseSpec*> base_of;
  for (const App& app : w0_apps()) {
    const BaseSpec*& base = base_of[app.model];
    if (base == nullptr) {
      const auto taken = [&](const BaseSpec& b) {
        return std::any_of(base_of.begin(), base_of.end(), [&](const auto& entry) { return entry.second == &b; });
      };
      base = &*std::find_if(bases.begin(), bases.end(),
                            [&](const BaseSpec& b) { return b.devices == app.devices && !taken(b); });
    }
    scenario.models.push_back(fine_tune(ModelId(app.name), *base, scenario.device));
    scenario.clients.models.push_back(ModelId(app.name));
  }
  return scenario;
}

}  // namespace sangam::sim
