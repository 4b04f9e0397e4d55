// Grammar, draws and figures of a what-if.
#include "cli/what_if.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/profile/profile_file.hpp"
#include "sim/trace/random.hpp"
#include "sim/world/controls.hpp"

namespace sangam {
namespace {

constexpr double kRateMost = 1'000.0;
constexpr std::int64_t kWorkersMost = 100'000;

Error bad(std::string_view change, const std::string& why) {
  return make_error(ErrorCode::invalid_input, "--change '" + std::string(change) + "': " + why);
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, number);
  return code == std::errc{} && at == end;
}

std::string names_of(const Situation& situation) {
  std::string names;
  for (const SnapshotModel& model : situation.models) names += (names.empty() ? "" : ", ") + model.id.text();
  return names;
}

Result<void> change_rate(Situation& situation, std::string_view change, std::string_view model, std::string_view value) {
  double factor = 0.0;
  if (!read(value, factor) || !(factor > 0.0 && factor <= kRateMost)) return bad(change, "write a factor above 0, and 1000 at most, as 'rate=3'");
  bool any = false;
  for (SnapshotModel& known : situation.models) {
    if (!model.empty() && known.id.text() != model) continue;
    known.traffic->requests_per_second *= factor;
    any = true;
  }
  if (!any) return bad(change, "'" + std::string(model) + "' is asked for by nobody; these are: " + names_of(situation));
  return {};
}

Result<void> change_workers(Situation& situation, std::string_view change, std::string_view value) {
  const bool is_relative = value.starts_with('+') || value.starts_with('-');
  std::int64_t number = 0;
  const std::string_view digits = value.starts_with('+') ? value.substr(1) : value;
  if (digits.starts_with('-') != value.starts_with('-') || !read(digits, number) || number > kWorkersMost || number < -kWorkersMost)
    return bad(change, "write a number of workers, as 'workers=4', 'workers=+2' or 'workers=-1'");
  for (auto& [devices, count] : situation.workers) {
    const std::int64_t left = is_relative ? count + number : number;
    if (left < 1) return bad(change, "of " + std::to_string(count) + " workers of " + std::to_string(devices) + " devices at least one must stay");
    count = left;
  }
  return {};
}

Result<void> remove_model(Situation& situation, std::string_view change, std::string_view model) {
  const auto removed = std::erase_if(situation.models, [&](const SnapshotModel& known) { return known.id.text() == model; });
  if (removed == 0) return bad(change, "'" + std::string(model) + "' is asked for by nobody; these are: " + names_of(situation));
  if (situation.models.empty()) return bad(change, "no model is left to ask for");
  return {};
}

/// Normal of the logarithm with this mean and deviation of the value itself.
Tokens drawn(sim::Random& random, double mean, double deviation) {
  const double spread = std::log(1.0 + std::pow(deviation / std::max(mean, 1.0), 2.0));
  const double value = mean * std::exp(std::sqrt(spread) * random.normal() - spread / 2.0);
  return Tokens(std::max<std::int64_t>(1, std::llround(std::min(value, 1e6))));
}

sim::ModelSpec spec_of(const SnapshotModel& model) {
  sim::ModelSpec spec;
  spec.id = model.id;
  spec.devices = model.devices;
  spec.weights = model.weights;
  spec.kv_per_token = model.kv_per_token;
  set_costs(spec, *model.costs);
  return spec;
}

bool is_everywhere(const Snapshot& snapshot, const std::vector<SnapshotModel>& models) {
  return std::all_of(models.begin(), models.end(), [&](const SnapshotModel& model) {
    return std::all_of(snapshot.workers.begin(), snapshot.workers.end(), [&](const SnapshotWorker& worker) {
      const SnapshotInstance* instance = worker.find(model.id);
      return worker.devices != model.devices || (instance != nullptr && instance->active);
    });
  });
}

}  // namespace

Result<Situation> situation_of(const Snapshot& snapshot) {
  Situation situation;
  if (snapshot.workers.empty()) return make_error(ErrorCode::invalid_input, "the snapshot has no workers; take it from a mesh that is ready");
  situation.memory = snapshot.workers.front().memory;
  for (const SnapshotWorker& worker : snapshot.workers) {
    ++situation.workers[worker.devices];
    situation.memory = std::min(situation.memory, worker.memory);
  }
  bool has_oracle = false;
  for (const SnapshotModel& model : snapshot.models) {
    has_oracle |= model.traffic.has_value();
    if (model.traffic && model.costs && model.traffic->requests_per_second > 0.0) situation.models.push_back(model);
  }
  if (!has_oracle) return make_error(ErrorCode::invalid_input, "the snapshot has neither traffic nor costs; add a table [oracle] to the mesh's configuration");
  if (situation.models.empty()) return make_error(ErrorCode::invalid_input, "no model of the snapshot is asked for; take it while the mesh has load");
  if (situation.memory <= Bytes(0)) {
    return make_error(ErrorCode::invalid_input, "the snapshot does not say how much memory a worker has; take it again, a second later");
  }
  for (const SnapshotModel& model : situation.models) {
    if (!situation.workers.contains(model.devices))
      return make_error(ErrorCode::invalid_input, "no worker has the " + std::to_string(model.devices) + " devices of '" + model.id.text() + "'");
    if (model.weights > situation.memory) {
      return make_error(ErrorCode::invalid_input, "'" + model.id.text() + "' weighs " + std::to_string(model.weights.count()) +
                                                      " bytes, and the smallest worker of the snapshot has " + std::to_string(situation.memory.count()));
    }
  }
  situation.everywhere = is_everywhere(snapshot, situation.models);
  return situation;
}

Result<void> apply_change(Situation& situation, std::string_view change) {
  const auto equals = change.find('=');
  const std::string_view name = change.substr(0, equals);
  const std::string_view value = equals == change.npos ? std::string_view() : change.substr(equals + 1);
  if (name.starts_with("remove ") && equals == change.npos) return remove_model(situation, change, name.substr(7));
  if (name == "rate") return change_rate(situation, change, {}, value);
  if (name.starts_with("rate ")) return change_rate(situation, change, name.substr(5), value);
  if (name == "workers") return change_workers(situation, change, value);
  if (name == "slo") {
    double factor = 0.0;
    if (!read(value, factor) || !(factor > 0.0 && factor <= kRateMost)) return bad(change, "write a factor above 0, and 1000 at most, as 'slo=0.5'");
    situation.slo *= factor;
    return {};
  }
  if (name == "control") {
    sim::Scenario scenario;
    if (const auto known = sim::set_control(scenario, value); !known) return bad(change, known.error().context);
    situation.control = value;
    return {};
  }
  return bad(change, "is none of 'rate=3', 'rate MODEL=3', 'workers=4', 'workers=+2', 'remove MODEL', 'control=NAME', 'slo=0.5'");
}

sim::Trace trace_of(const Situation& situation, double seconds, std::uint64_t seed) {
  sim::Trace trace;
  for (const SnapshotModel& model : situation.models) {
    const auto app = std::uint32_t(trace.apps.size());
    trace.apps.push_back(model.id.text());
    std::uint64_t own = seed;
    for (const char c : model.id.text()) own = own * 0x100000001b3 ^ std::uint8_t(c);  // FNV's prime.
    sim::Random random(own);
    const ClientTraffic& traffic = *model.traffic;
    for (double at = random.exponential() / traffic.requests_per_second; at < seconds;
         at += random.exponential() / traffic.requests_per_second) {
      const Tokens input = drawn(random, traffic.input_mean, traffic.input_deviation);
      const Tokens output = drawn(random, traffic.output_mean, traffic.output_deviation);
      trace.requests.push_back({Micros(std::int64_t(at * 1e6)), app, input, output});
    }
  }
  std::stable_sort(trace.requests.begin(), trace.requests.end(),
                   [](const sim::TraceRequest& a, const sim::TraceRequest& b) { return a.arrival < b.arrival; });
  return trace;
}

Result<sim::Scenario> scenario_of(const Situation& situation) {
  sim::Scenario scenario;
  scenario.workers = situation.workers;
  scenario.device.memory = situation.memory;
  scenario.device.memory_share = 1.0;  // The pool is for weights and KV alone.
  scenario.clients.slo_factor = situation.slo;
  scenario.clients.requeue_when_late = true;
  for (const SnapshotModel& model : situation.models) {
    scenario.models.push_back(spec_of(model));
    scenario.clients.models.push_back(model.id);
    scenario.clients.objectives.push_back({model.traffic->ttft_slo, model.traffic->tpot_slo});
  }
  scenario.fixed = situation.control.empty() && situation.everywhere;
  if (scenario.fixed) return scenario;
  const std::string control = situation.control.empty() ? "sangam" : situation.control;
  if (const auto set = sim::set_control(scenario, control); !set) return set.error();
  return scenario;
}

}  // namespace sangam
