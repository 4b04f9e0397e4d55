// The JSON of the admin routes.
#include "gateway/api/admin.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

#include "gateway/api/body_fields.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 3> kAtDeadline{"stay", "cancel", "migrate"};
constexpr std::array<std::string_view, 6> kFields{"models",       "workers",     "sources",
                                                  "drain_for_ms", "at_deadline", "pin"};
constexpr double kDayInMillis = 86'400'000;

template <class T>
std::vector<T> read_names(BodyFields& fields, std::string_view name) {
  std::vector<T> names;
  const json::array* list = fields.array(name);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const json::value& value = (*list)[i];
    if (!value.is_string() || value.get_string().empty() || value.get_string().size() > 255) {
      fields.fail(name, "expected a list of names of 1 to 255 bytes");
      return names;
    }
    names.emplace_back(std::string(value.get_string()));
  }
  return names;
}

json::value error_value(ErrorCode code, const std::string& why) {
  if (code == ErrorCode::none) return nullptr;
  return json::object{{"code", form_of(code).code}, {"message", why}};
}

template <class T>
json::array texts_of(const std::vector<T>& names) {
  json::array texts;
  for (const T& name : names) texts.emplace_back(name.text());
  return texts;
}

json::object order_object(const OrderEnded& order) {
  json::array phases;
  Micros took{0};
  Bytes moved;
  for (const Phase& phase : order.phases) {
    phases.push_back(json::object{{"name", phase.name},
                                  {"took_ms", double(phase.took.count()) / 1000},
                                  {"moved_bytes", phase.moved.count()}});
    took += phase.took;
    moved += phase.moved;
  }
  return {{"model", order.model.text()},
          {"worker", order.worker.text()},
          {"residency", name_of(order.residency)},
          {"error", error_value(order.code, order.why)},
          {"took_ms", double(took.count()) / 1000},
          {"moved_bytes", moved.count()},
          {"phases", std::move(phases)},
          {"evicted", texts_of(order.evicted)}};
}

json::object bytes_object(const InstanceState& instance) {
  return {{"weights", instance.weights.count()},
          {"missing", instance.missing.count()},
          {"own", instance.own.count()},
          {"host", instance.host.count()}};
}

/// Also of a model that is not active any more, as long as something of it is kept.
json::array models_on(const WorkerMemory& worker, const std::vector<InstanceState>& instances) {
  json::array models;
  for (const InstanceState& instance : instances) {
    if (instance.worker != worker.worker) continue;
    const auto kv = std::find_if(worker.models.begin(), worker.models.end(),
                                 [&](const ModelKv& held) { return held.model == instance.model; });
    const bool is_active = instance.residency == Residency::active;
    if (!is_active && kv == worker.models.end()) continue;
    const Bytes weights = is_active ? instance.weights : Bytes{0};
    const Bytes own = is_active ? instance.own : Bytes{0};
    const ModelKv held = kv == worker.models.end() ? ModelKv() : *kv;
    models.push_back(json::object{{"model", instance.model.text()},
                                  {"weights_bytes", weights.count()},
                                  {"own_bytes", own.count()},
                                  {"shared_bytes", (weights - own).count()},
                                  {"kv_bytes", held.kv.count()},
                                  {"cached_bytes", held.cached.count()}});
  }
  return models;
}

}  // namespace

ApiResult<Command> parse_command(CommandVerb verb, std::string_view body) {
  Command command;
  command.verb = verb;
  if (body.empty()) return command;
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  BodyFields fields(*parsed);
  for (const auto& field : *parsed) {
    if (std::find(kFields.begin(), kFields.end(), field.key()) != kFields.end()) continue;
    fields.fail(field.key(), "is not known; there are models, workers, sources, drain_for_ms, at_deadline and pin");
  }
  command.models = read_names<ModelId>(fields, "models");
  command.workers = read_names<ActorName>(fields, "workers");
  command.sources = read_names<ActorName>(fields, "sources");
  command.drain_for = Millis(fields.integer("drain_for_ms", {0, kDayInMillis}).value_or(0));
  command.pin = fields.boolean("pin").value_or(false);
  if (const auto at_deadline = fields.text("at_deadline")) {
    const auto known = std::find(kAtDeadline.begin(), kAtDeadline.end(), *at_deadline);
    if (known == kAtDeadline.end()) fields.fail("at_deadline", "expected stay, cancel or migrate");
    command.at_deadline = AtDeadline(std::min<std::ptrdiff_t>(known - kAtDeadline.begin(), 2));
  }
  if (fields.fault()) return *fields.fault();
  return command;
}

std::string command_json(const CommandEnded& ended) {
  json::array orders;
  for (const OrderEnded& order : ended.orders) orders.push_back(order_object(order));
  return json::serialize(json::object{{"orders", std::move(orders)}});
}

ApiError error_of(const CommandEnded& ended) {
  return {ended.code, ended.why, "", Millis{0}};
}

std::string instances_json(const std::vector<InstanceState>& instances) {
  json::array listed;
  for (const InstanceState& instance : instances) {
    listed.push_back(json::object{{"model", instance.model.text()},
                                  {"worker", instance.worker.text()},
                                  {"residency", name_of(instance.residency)},
                                  {"target", name_of(instance.target)},
                                  {"bytes", bytes_object(instance)},
                                  {"error", error_value(instance.code, instance.why)}});
  }
  return json::serialize(json::object{{"instances", std::move(listed)}});
}

std::string memory_json(const std::vector<WorkerMemory>& workers, const std::vector<InstanceState>& instances) {
  json::array listed;
  for (const WorkerMemory& worker : workers) {
    listed.push_back(json::object{{"worker", worker.worker.text()},
                                  {"pool_bytes", worker.pool.count()},
                                  {"weights_bytes", worker.weights.count()},
                                  {"kv_bytes", worker.kv.count()},
                                  {"cached_bytes", worker.cached.count()},
                                  {"free_bytes", worker.free.count()},
                                  {"shared_bytes", worker.shared.count()},
                                  {"host_bytes", worker.host.count()},
                                  {"host_max_bytes", worker.host_max.count()},
                                  {"models", models_on(worker, instances)}});
  }
  return json::serialize(json::object{{"workers", std::move(listed)}});
}

}  // namespace sangam
