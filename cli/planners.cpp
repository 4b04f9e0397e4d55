// One role a planner, and the record of the placement's last plan.
#include "cli/planners.hpp"

#include <memory>

#include "actors/autoscaler/autoscaler_core.hpp"
#include "actors/oracle/oracle_core.hpp"
#include "actors/placement/placement_core.hpp"
#include "messages/wire/codec.hpp"

namespace sangam {
namespace {

constexpr std::string_view kPlanKey = "placement/plan";

/// As the wire has it: the codec checks every byte of what it reads.
Result<std::string> record_of(const Plan& plan) {
  auto envelope = std::make_shared<Envelope>();
  envelope->from = envelope->to = plan.by;
  envelope->id = plan.epoch;
  envelope->message = plan;
  wire::Frame frame;
  frame.body = wire::Body(EnvelopePtr(std::move(envelope)));
  const auto encoded = wire::encode(frame);
  if (!encoded) return make_error(ErrorCode::internal, "the plan cannot be written down: " + encoded.error().why);
  const auto bytes = wire::bytes_of(*encoded);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<Plan> plan_in(const std::string& record) {
  const auto frame = wire::decode(std::as_bytes(std::span(record)));
  if (!frame) return make_error(ErrorCode::corrupt, frame.error().why);
  const auto* envelope = std::get_if<EnvelopePtr>(&frame->body);
  const Plan* plan = envelope == nullptr ? nullptr : std::get_if<Plan>(&(*envelope)->message);
  if (plan == nullptr) return make_error(ErrorCode::corrupt, "it is no plan");
  return *plan;
}

class KeptPlacement final : public Hosted {
 public:
  KeptPlacement(PlacementOptions options, Store& store) : core_(std::move(options)), store_(store) {}

  void start(Instant now, Outbox& out) override {
    const auto record = store_.get(Family::meta, kPlanKey);
    if (!record) return complain("placement.plan_unreadable", record.error(), out);
    if (!*record) return;
    const auto plan = plan_in(**record);
    if (!plan) return complain("placement.plan_unreadable", plan.error(), out);
    core_.restore(*plan, now);
    kept_ = plan->epoch;
  }
  bool on(const Message& message, Instant now, Outbox& out) override {
    const bool understood = deliver(core_, message, now, out);
    keep(out);
    return understood;
  }
  void wake(Timer timer, Instant now, Outbox& out) override {
    core_.wake(timer, now, out);
    keep(out);
  }
  bool busy() const override { return false; }
  void step(Instant, Outbox&) override {}

 private:
  /// Before it is told: the letters leave after this.
  void keep(Outbox& out) {
    const Plan& plan = core_.last_plan();
    if (plan.epoch == kept_) return;
    kept_ = plan.epoch;
    const auto record = record_of(plan);
    if (!record) return complain("placement.plan_not_kept", record.error(), out);
    if (const auto put = store_.put(Family::meta, kPlanKey, *record); !put)
      complain("placement.plan_not_kept", put.error(), out);
  }

  static void complain(std::string event, const Error& error, Outbox& out) {
    out.log(LogLevel::warning, std::move(event), {{"why", error.context}});
  }

  PlacementCore core_;
  Store& store_;
  std::uint64_t kept_ = 0;  ///< The epoch of the last plan that was written, or could not be.
};

template <class Core, class Options>
Role role_of(const std::string& name, const Options& options) {
  auto make = [options](Incarnation incarnation) -> Result<std::unique_ptr<Hosted>> {
    Options own = options;
    if constexpr (requires { own.epoch; }) own.epoch = first_epoch(incarnation);
    return {std::make_unique<HostedCore<Core>>(std::move(own))};
  };
  return {ActorName(name), std::move(make), true};
}

}  // namespace

std::uint64_t first_epoch(Incarnation incarnation) {
  constexpr int kPlanBits = 28;  // At two plans a second, four years; 36 bits are left for incarnations.
  return std::uint64_t(incarnation) << kPlanBits;
}

std::unique_ptr<Hosted> keep_plans(PlacementOptions options, Store& store) {
  return std::make_unique<KeptPlacement>(std::move(options), store);
}

std::optional<Role> planner_role(const MeshConfig& config, const std::string& role, Store& store) {
  if (role == "oracle" && config.oracle) return role_of<OracleCore>(role, *config.oracle);
  if (role == "autoscaler" && config.autoscaler) return role_of<AutoscalerCore>(role, *config.autoscaler);
  if (role != "placement" || !config.placement) return std::nullopt;
  auto make = [options = *config.placement, &store](Incarnation incarnation) -> Result<std::unique_ptr<Hosted>> {
    auto own = options;
    own.epoch = first_epoch(incarnation);
    return keep_plans(std::move(own), store);
  };
  return Role{ActorName(role), std::move(make), true};
}

}  // namespace sangam
