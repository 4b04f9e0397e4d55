// Strict reading: what a simulation is told by mistake it would believe.
#include "cli/snapshot.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "cli/answers.hpp"
#include "storage/json/json_fields.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr Limits<std::int64_t> kCount{0, INT64_MAX};
constexpr Limits<double> kNumber{0.0, 1e15};
constexpr std::size_t kFileMax = 64 << 20;
constexpr Limits<double> kMicros{0.0, 3.6e9};  // An hour.
constexpr Limits<std::int64_t> kMillis{0, 86'400'000};

ClientTraffic traffic_of(const json::object& object, const std::string& place, JsonFields& outer) {
  JsonFields fields(object, place);
  ClientTraffic traffic;
  traffic.requests_per_second = fields.number("requests_per_second", kNumber);
  traffic.input_mean = fields.number("input_tokens_mean", kNumber);
  traffic.input_deviation = fields.number("input_tokens_deviation", kNumber);
  traffic.output_mean = fields.number("output_tokens_mean", kNumber);
  traffic.output_deviation = fields.number("output_tokens_deviation", kNumber);
  traffic.ttft_slo = Millis(fields.integer("ttft_slo_ms", kMillis));
  traffic.tpot_slo = Millis(fields.integer("tpot_slo_ms", kMillis));
  if (fields.error()) outer.adopt(*fields.error());
  return traffic;
}

ModelCosts costs_of(const json::object& object, const std::string& place, JsonFields& outer) {
  JsonFields fields(object, place);
  ModelCosts costs;
  costs.step = fields.number("step_us", kMicros);
  costs.prompt = fields.number("prompt_us", kMicros);
  costs.prompt_token = fields.number("prompt_token_us", kMicros);
  costs.sequence = fields.number("sequence_us", kMicros);
  costs.context_token = fields.number("context_token_us", kMicros);
  costs.settled = fields.maybe_flag("settled").value_or(false);
  if (fields.error()) outer.adopt(*fields.error());
  return costs;
}

SnapshotModel model_of(JsonFields& fields, const std::string& place) {
  SnapshotModel model;
  model.id = ModelId(fields.text("model"));
  model.devices = fields.integer("devices", {1, 100'000});
  model.weights = Bytes(fields.integer("weights_bytes", kCount));
  model.kv_per_token = Bytes(fields.integer("kv_bytes_per_token", kCount));
  if (const auto* traffic = fields.maybe_object("traffic")) model.traffic = traffic_of(*traffic, place + ".traffic", fields);
  if (const auto* costs = fields.maybe_object("costs")) model.costs = costs_of(*costs, place + ".costs", fields);
  return model;
}

/// Reads each object of the list `name` with `read`.
template <class T, class Read>
std::vector<T> list_of(JsonFields& outer, std::string_view name, const std::string& place, Read read) {
  std::vector<T> all;
  const json::array* list = outer.maybe_array(name);
  if (list == nullptr) {
    outer.refuse(name, "is missing; take it from `sangam ctl snapshot`");
    return all;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string here = place + ": " + std::string(name) + "[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) {
      outer.adopt(make_error(ErrorCode::invalid_input, here + " is no object"));
      return all;
    }
    JsonFields fields((*list)[i].get_object(), here);
    all.push_back(read(fields, here));
    if (fields.error()) outer.adopt(*fields.error());
  }
  return all;
}

SnapshotInstance instance_of(JsonFields& fields, const std::string&) {
  SnapshotInstance instance;
  instance.model = ModelId(fields.text("model"));
  instance.active = fields.text("residency") == "active";
  instance.prefill_tokens = fields.integer("prefill_tokens", kCount);
  instance.output_tokens = fields.integer("output_tokens", kCount);
  instance.context_tokens = fields.integer("context_tokens", kCount);
  return instance;
}

SnapshotWorker worker_of(JsonFields& fields, const std::string& place) {
  SnapshotWorker worker;
  worker.worker = ActorName(fields.text("worker"));
  worker.incarnation = std::uint64_t(fields.integer("incarnation", kCount));
  worker.sequence = fields.integer("sequence", kCount);
  worker.devices = fields.integer("devices", {1, 100'000});
  worker.memory = Bytes(fields.integer("memory_bytes", kCount));
  worker.busy = Micros(fields.integer("busy_us", kCount));
  worker.steps = fields.integer("steps", kCount);
  worker.instances = list_of<SnapshotInstance>(fields, "instances", place, instance_of);
  return worker;
}

template <class List, class Is>
auto* find_in(const List& list, Is is) {
  const auto found = std::find_if(list.begin(), list.end(), is);
  return found == list.end() ? nullptr : &*found;
}

Result<Snapshot> snapshot_of(const json::object& object, const std::string& place) {
  JsonFields fields(object, place);
  Snapshot snapshot;
  snapshot.models = list_of<SnapshotModel>(fields, "models", place, model_of);
  snapshot.workers = list_of<SnapshotWorker>(fields, "workers", place, worker_of);
  if (fields.error()) return *fields.error();
  return snapshot;
}

}  // namespace

const SnapshotInstance* SnapshotWorker::find(const ModelId& model) const {
  return find_in(instances, [&](const SnapshotInstance& instance) { return instance.model == model; });
}

const SnapshotModel* Snapshot::find(const ModelId& model) const {
  return find_in(models, [&](const SnapshotModel& known) { return known.id == model; });
}

Result<Snapshot> parse_snapshot(std::string_view text, const std::string& place) {
  const auto object = parse_json_object(text, place);
  if (!object) return object.error();
  return snapshot_of(*object, place);
}

Result<Snapshot> read_snapshot(const std::string& path) {
  const auto object = read_json_object(path, kFileMax);
  if (!object) return make_error(object.error().code, object.error().context + "; write one with `sangam ctl snapshot --output FILE`");
  return snapshot_of(*object, path);
}

Result<std::string> fetch_snapshot(const HttpBase& base, const std::string& key) {
  const auto answer = http_call(base, {"GET", "/admin/snapshot", "", Millis(5'000), key});
  if (!answer) return no_mesh(answer.error());
  if (answer->status != 200) return refused(*answer);
  return answer->body;
}

Result<Snapshot> take_snapshot(const HttpBase& base, const std::string& key) {
  const auto text = fetch_snapshot(base, key);
  if (!text) return text.error();
  return parse_snapshot(*text, base.host + ":" + base.port + "/admin/snapshot");
}

}  // namespace sangam
