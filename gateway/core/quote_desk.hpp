// The questions about first tokens that are under way: who waits for which, and that each is answered once, in time.
#pragma once

#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "gateway/api/errors.hpp"
#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// A question's one answer.
struct QuoteEnded {
  RequestId question{};
  ApiResult<Quoted> answer;
};

class QuoteDesk {
 public:
  static constexpr Timer kTimer{1};  ///< Of the core; rings at the earliest end of a question's time.

  /// `within`: for the scheduler's answer.
  QuoteDesk(ActorName gateway, Millis within) : gateway_(std::move(gateway)), within_(within) {}

  /// Its `request` names the question. At once answered where no scheduler is here.
  void open(AskQuote ask, Instant now, Outbox& out);
  /// Answers a question that does not reach the scheduler.
  void refuse(RequestId question, ApiError why) { ended_.push_back({question, std::move(why)}); }
  /// Nobody waits any more.
  void close(RequestId question) { open_.erase(question); }

  void answered(const Quoted& quoted);
  void found(const ActorName& actor);
  void lost(const ActorLost& lost);
  void wake(Instant now, Outbox& out);

  [[nodiscard]] std::vector<QuoteEnded> take_ended() { return std::exchange(ended_, {}); }

 private:
  void fail(RequestId question, std::string why);

  ActorName gateway_;
  Millis within_;
  std::set<RequestId> open_;
  std::deque<std::pair<Instant, RequestId>> due_;  // In order, since all have the same time; also of closed ones.
  std::vector<QuoteEnded> ended_;
  bool scheduler_is_here_ = false;
};

}  // namespace sangam
