// A worker's place in the simulated mesh: it hears and says what a real one does and takes the time that its
// hardware and models would take.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "messages/vocabulary/outbox.hpp"
#include "sim/world/decode_line.hpp"
#include "sim/world/hardware.hpp"
#include "sim/world/journal.hpp"
#include "sim/world/world.hpp"

namespace sangam::sim {

struct SimWorkerOptions {
  ActorName name;
  Incarnation incarnation{1};
  DeviceSpec device;
  std::int64_t devices = 1;
  std::vector<const ModelSpec*> models;  ///< All that it may hold, of its class; they outlive it.
  std::vector<ModelId> active;           ///< From the start.
  std::int64_t running_max = 256;
  Tokens prefill_chunk{512};
  /// Of its weights, what a model has in common with each other fine-tune of its base; from 0 to 1.
  double shared_share = 0.0;
  /// Kept free for KV when a model becomes active, as a share of the memory.
  double kv_floor_share = 0.02;
  std::vector<ActorName> state_hearers;      ///< Beside the lifecycle, of residencies: planners.
  std::vector<ActorName> telemetry_hearers;  ///< Of Telemetry.
  std::vector<ActorName> table_hearers;      ///< Of ModelTable.
};

/// Loads of models that were not active.
struct WakeUps {
  std::int64_t count = 0;
  Bytes copied{0};
  Micros took{0};  ///< Sum over all, from the order to the end of the copy.

  WakeUps& operator+=(const WakeUps& others) {
    count += others.count;
    copied += others.copied;
    took += others.took;
    return *this;
  }
};

/// Simplifications beside the real worker: prefills run one after the other; chunks of the first one alternate with
/// decode steps of all models, which gives both a constant speed between two events; a run takes its whole KV when
/// it begins, and one that finds none waits; a drain has no deadline.
class SimWorker final : public Inhabitant {
 public:
  SimWorker(SimWorkerOptions options, Journal& journal);

  void hear(const Message& message, Instant now, Outbox& out) override;
  void wake(Timer timer, Instant now, Outbox& out) override;

  void on(const Run& run, Instant now, Outbox& out);
  void on(const Cancel& cancel, Instant now, Outbox& out);
  void on(const Order& order, Instant now, Outbox& out);
  void on(const HandOver& offered, Instant now, Outbox& out);
  void on(const HandOverEnded& ended, Instant now, Outbox& out);
  void on(const ActorFound& found, Instant now, Outbox& out);

  /// Models that are active or on their way: a device's time is paid for while there are any.
  [[nodiscard]] std::int64_t models_on() const;
  /// Since it began.
  [[nodiscard]] const WakeUps& wake_ups() const { return wake_ups_; }
  [[nodiscard]] std::int64_t devices() const { return options_.devices; }

 private:
  /// A model that this worker may hold.
  struct Holding {
    const ModelSpec* spec = nullptr;
    Residency residency = Residency::cold;
    Residency target = Residency::cold;
    WorkerRole role = WorkerRole::mixed;
    std::vector<Order> orders;  ///< That take it to `target`.
    std::int64_t live = 0;
    Bytes kv{0};
    std::int64_t decoding = 0;
    double context = 0.0;  ///< Of what decodes; half of the output is counted from the start.
    double decode_time = 0.0;  ///< Microseconds; these three are told with `load`.
    double decode_steps = 0.0;
    double context_tokens = 0.0;
    ModelLoad load;
  };
  enum class Stage : std::uint8_t { waiting, prefilling, decoding, offered };
  struct LiveRun {
    Run run;  ///< Without its prompt.
    Holding* holding = nullptr;
    Stage stage = Stage::waiting;
    Tokens prefill{0};
    Bytes kv{0};
    double joined = 0.0;  ///< Tokens of the line, while it decodes.
    std::int64_t left = 0;  ///< Tokens that it will still get.
    std::size_t asked = 0;  ///< Takers that have been asked.
    double prefill_began = 0.0;
  };
  struct Move {
    Holding* holding = nullptr;
    Phase phase;
    Instant ordered{};
    Instant ends{};
  };

  // Runs (sim_worker.cpp).
  void settle(double now);
  void rebend(double now);
  void start_prefill(double now);
  void prefill_done(Instant now, Outbox& out);
  void offer(LiveRun& live, Instant now, Outbox& out);
  void decode(LiveRun& live, double now);
  void finish_due(Instant now, Outbox& out);
  void end(RequestId request, FinishReason finish, Outbox& out);
  void take_kv(LiveRun& live, Bytes bytes);
  void give_back_kv(LiveRun& live);
  void set_alarm(Instant now, Outbox& out);
  LiveRun& admit(Run run, Holding& holding);
  [[nodiscard]] const LiveRun* in_prefill() const;
  [[nodiscard]] static double step_of(const Holding& holding);
  [[nodiscard]] Bytes kv_of(const LiveRun& live) const;
  [[nodiscard]] Bytes free_bytes() const;

  // Models (sim_residency.cpp).
  [[nodiscard]] static bool is_on(const Holding& holding);
  [[nodiscard]] Bytes shared_of(const ModelSpec& spec) const;
  [[nodiscard]] Bytes union_of(std::vector<const ModelSpec*> specs) const;
  [[nodiscard]] std::vector<const ModelSpec*> specs_on() const;
  [[nodiscard]] bool has_sibling_on(const Holding& holding) const;
  void residency_changed(const Holding& holding, Outbox& out);
  void raise(Holding& holding, const Order& order, Instant now, Outbox& out);
  void lower(Holding& holding, const Order& order, Outbox& out);
  [[nodiscard]] bool make_room(const Holding& holding, const Order& order, Outbox& out, std::vector<ModelId>& evicted);
  void move_done(Instant now, Outbox& out);
  void drained(Holding& holding, Outbox& out);
  void answer(Holding& holding, ErrorCode code, const std::string& why, Outbox& out);
  void answer(const Order& order, const Holding& holding, ErrorCode code, const std::string& why, Outbox& out) const;
  void say_state(const Holding& holding, bool to_all, Outbox& out) const;
  void say_ready(const Holding& holding, Outbox& out) const;
  void say_all_ready(Outbox& out) const;
  void say_memory(Outbox& out) const;
  [[nodiscard]] InstanceState state_of(const Holding& holding) const;
  [[nodiscard]] WorkerMemory memory() const;
  [[nodiscard]] bool hears_states(const ActorName& actor) const;
  void leave(Holding& holding, Outbox& out);
  void say_telemetry(Instant now, Outbox& out);
  void say_tables(const ActorName& to, Outbox& out) const;

  SimWorkerOptions options_;
  Journal& journal_;
  std::map<ModelId, Holding> holdings_;
  std::vector<Holding*> decoding_;  // Those of which something decodes.
  std::unordered_map<RequestId, LiveRun> runs_;
  std::deque<RequestId> prefills_;  // The first is in work.
  double prefill_left_ = 0.0;       // Microseconds of work at full speed.
  double prefill_speed_ = 0.0;
  double settled_at_ = 0.0;
  DecodeLine line_;
  using End = std::pair<double, RequestId>;  // Tokens of the line, and whose last one that is.
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<Move> moves_;
  WakeUps wake_ups_;
  Bytes weights_{0};
  Bytes kv_{0};
  Telemetry telemetry_;
  Instant told_at_{};
};

}  // namespace sangam::sim
