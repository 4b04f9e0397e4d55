// Decides what a worker runs and tells everyone how it went; the computing is behind the Runner.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/worker/model_keeper.hpp"
#include "actors/worker/runner.hpp"
#include "actors/worker/work_counts.hpp"
#include "actors/worker/worker_options.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

/// The shell calls `step` while `busy`, and hands over letters between two steps: a cancel is obeyed within
/// one step. Every run that is taken or refused ends in exactly one RunEnded, here or where it is handed over to.
class WorkerCore final : private LiveRuns {
 public:
  WorkerCore(WorkerOptions options, std::unique_ptr<Runner> runner);

  void start(Instant now, Outbox& out);
  void on(const Run& run, Instant now, Outbox& out);
  void on(const Cancel& cancel, Instant now, Outbox& out);
  void on(const ReserveKv& wish, Instant now, Outbox& out);
  void on(const KvReserved& reserved, Instant now, Outbox& out);
  void on(const HandOver& offered, Instant now, Outbox& out);
  void on(const HandOverEnded& ended, Instant now, Outbox& out);
  void on(const RunMoved& moved, Instant now, Outbox& out);
  void on(const Order& order, Instant now, Outbox& out);
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  [[nodiscard]] bool busy() const { return keeper_.busy() || runner_->has_work(); }
  /// A piece of a model's move, where one is under way, and one step of computing. `now`: when it begins.
  void step(Instant now, Outbox& out);

 private:
  /// A run that another worker is to go on with after its first token.
  struct Outgoing {
    HandOver letter;
    std::deque<ActorName> left;      ///< Not asked yet, the best first.
    ReserveKv wish = {};             ///< What has been asked for in advance, while the prompt is computed,
    std::deque<ActorName> unwished = {};          ///< of whom not yet,
    std::optional<ActorName> reserving = {};      ///< and who has been asked and has not refused.
    std::optional<ActorName> asked = {};  ///< Until it answers the run may be either's, and its pages stay.
    bool taken = false;       ///< By the one that was asked, which the queue may not know yet.
    bool queue_lost = false;  ///< Since it was asked: nobody will say that the queue knows.
    bool given_up = false;           ///< Meanwhile: if it does not go on there, it ends here,
    std::optional<TokensProduced> last_word = {};  ///< with this to the gateway, where that has heard nothing yet.
  };
  struct Live {
    Attempt attempt = 1;
    ModelId model;
    ActorName tokens_to;
    Micros estimated{0};
    Instant prefill_began{};
    Micros prefill_time{0};
    Tokens prefilled{0};
    Tokens length{0};              ///< Prompt and all generated tokens.
    Tokens produced{0};            ///< In this attempt.
    std::uint64_t next_token = 0;  ///< Index among all generated tokens of the request.
    bool prefill_told = false;
    std::optional<Outgoing> outgoing = {};

    [[nodiscard]] bool in_doubt() const { return outgoing && outgoing->asked; }
  };
  /// Pages that are set aside for a run whose prompt another worker computes.
  struct Incoming {
    Attempt attempt = 1;
    ModelId model;
    ActorName from;
    Instant expires{};
    Pages pages{0};
  };

  [[nodiscard]] std::int64_t live(const ModelId& model) const override;
  void end_all(const ModelId& model, AtDeadline how, Outbox& out) override;

  [[nodiscard]] bool is_news(RequestId request, Attempt attempt) const;
  void end_older(const Run& run, Outbox& out);
  [[nodiscard]] Result<void> room_for(const ModelId& model) const;
  [[nodiscard]] Result<void> take(const Run& run);
  [[nodiscard]] static Tokens length_of(const Run& run);
  void enter(RequestId request, Live live);
  void refuse(const Run& run, const Error& error, Outbox& out);
  void begin(const Run& run, Outbox& out);
  void end_untaken(const Run& run, FinishReason finish, Outbox& out);
  void drop_early(const std::function<bool(const Run&)>& which, Outbox& out);
  using Which = std::function<bool(RequestId, const Live&)>;
  /// In an order that does not depend on the hash.
  [[nodiscard]] std::vector<RequestId> live_where(const Which& which) const;
  void cancel_where(const Which& which, Outbox& out);
  [[nodiscard]] TokensProduced last_word(RequestId request, FinishReason finish, const Error& why) const;
  void end(RequestId request, FinishReason finish, Outbox& out);
  void forget(RequestId request, Outbox& out);
  void remember(RequestId request, Attempt attempt);

  // Runs that change the worker: worker_hand_over.cpp.
  [[nodiscard]] bool can_hand_over(const Run& run) const;
  [[nodiscard]] Result<void> take_over(const HandOver& offered, Outbox& out);
  void offer(RequestId request, Outbox& out);
  void ask_next(RequestId request, const std::string& why, Outbox& out);
  void go_on_here(RequestId request, const std::string& why, Outbox& out);
  void taker_lost(const ActorName& worker, Outbox& out);
  void queue_lost(const ActorName& queue, Outbox& out);

  // Pages for prompts that are still computed: worker_reservations.cpp.
  void reserve(ReserveKv wish, Outbox& out);
  void ask_to_reserve(RequestId request, Outbox& out);
  void take_back(RequestId request, Outbox& out);
  void reserver_lost(const ActorName& worker, Outbox& out);
  [[nodiscard]] Result<void> set_aside(const ReserveKv& wish, Instant now);
  void pull(Instant now, Outbox& out);
  void drop_incoming(RequestId request);
  void drop_incoming_where(const std::function<bool(const Incoming&)>& which);
  static constexpr Timer kPull{3};

  // What the control loops hear: worker_telemetry.cpp.
  void count_work(const StepOutcome& outcome);
  [[nodiscard]] Micros prefill_ahead() const;
  [[nodiscard]] ModelLoad load_of(const ModelId& model) const;
  void tell_telemetry(Instant now, Outbox& out);

  void account(const std::vector<PrefillRows>& prefills, Instant began, Instant ended, Outbox& out);
  void pass_on(TokensProduced& produced, Outbox& out);
  void tell_status(bool only_falls_to_zero, Outbox& out);

  const WorkerOptions options_;
  std::unique_ptr<Runner> runner_;
  ModelKeeper keeper_;
  std::set<ActorName> present_;
  std::map<ModelId, InstanceStatus> told_;
  WorkCounts counts_;
  std::unordered_map<RequestId, Live> live_;
  std::map<ModelId, std::int64_t> live_of_;
  std::map<RequestId, Incoming> incoming_;
  std::map<RequestId, Run> early_;  ///< Wait for their gateway to be found.
  std::map<ModelId, std::uint64_t> self_decodes_;
  std::unordered_map<RequestId, Attempt> ended_;  ///< The last kEndedMax, so that an echo is not run again.
  std::deque<RequestId> ended_order_;
  bool moved_ = false;      ///< The last step was a piece of a move.
  Instant prefill_free_{};  ///< Until when time has been given to prefills.
};

}  // namespace sangam
