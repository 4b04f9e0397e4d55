// Decides what a worker runs and tells everyone how it went; the computing is behind the Runner.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "actors/worker/model_keeper.hpp"
#include "actors/worker/runner.hpp"
#include "actors/worker/worker_options.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

/// The shell calls `step` while `busy`, and hands over letters between two steps: a cancel is obeyed within
/// one step. Every run that is taken or refused ends in exactly one RunEnded.
class WorkerCore final : private LiveRuns {
 public:
  WorkerCore(WorkerOptions options, std::unique_ptr<Runner> runner);

  void start(Instant now, Outbox& out);
  void on(const Run& run, Instant now, Outbox& out);
  void on(const Cancel& cancel, Instant now, Outbox& out);
  void on(const Order& order, Instant now, Outbox& out);
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  [[nodiscard]] bool busy() const { return keeper_.busy() || runner_->has_work(); }
  /// A piece of a model's move, where one is under way, and one step of computing. `now`: when it begins.
  void step(Instant now, Outbox& out);

 private:
  struct Live {
    Attempt attempt = 1;
    ModelId model;
    ActorName tokens_to;
    Micros estimated{0};
    Instant prefill_began{};
    Micros prefill_time{0};
    Tokens prefilled{0};
    Tokens produced{0};            ///< In this attempt.
    std::uint64_t next_token = 0;  ///< Index among all generated tokens of the request.
  };

  [[nodiscard]] std::int64_t live(const ModelId& model) const override;
  void end_all(const ModelId& model, AtDeadline how, Outbox& out) override;

  [[nodiscard]] bool is_news(const Run& run) const;
  [[nodiscard]] Result<void> take(const Run& run);
  void enter(RequestId request, Live live);
  void refuse(const Run& run, const Error& error, Outbox& out);
  template <class Which>
  void cancel_where(Which which, Outbox& out);
  void end(RequestId request, FinishReason finish, Outbox& out);
  void remember(RequestId request, Attempt attempt);

  void account(const std::vector<PrefillRows>& prefills, Instant began, Instant ended, Outbox& out);
  void pass_on(TokensProduced& produced, Outbox& out);
  void tell_status(bool only_falls_to_zero, Outbox& out);

  const WorkerOptions options_;
  std::unique_ptr<Runner> runner_;
  ModelKeeper keeper_;
  std::map<ModelId, InstanceStatus> told_;
  std::unordered_map<RequestId, Live> live_;
  std::map<ModelId, std::int64_t> live_of_;
  std::unordered_map<RequestId, Attempt> ended_;  ///< The last kEndedMax, so that an echo is not run again.
  std::deque<RequestId> ended_order_;
  bool moved_ = false;      ///< The last step was a piece of a move.
  Instant prefill_free_{};  ///< Until when time has been given to prefills.
};

}  // namespace sangam
