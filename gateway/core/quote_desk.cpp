// Bookkeeping of questions.
#include "gateway/core/quote_desk.hpp"

namespace sangam {
namespace {

const ActorName kScheduler("scheduler");

}  // namespace

void QuoteDesk::open(AskQuote ask, Instant now, Outbox& out) {
  const RequestId question = ask.request;
  open_.insert(question);
  if (!scheduler_is_here_) return fail(question, "The scheduler is away at the moment; try again.");
  ask.answer_to = gateway_;
  out.send(kScheduler, std::move(ask));
  due_.emplace_back(now + within_, question);
  if (due_.size() == 1) out.set_timer(kTimer, due_.front().first);
}

void QuoteDesk::answered(const Quoted& quoted) {
  if (open_.erase(quoted.request) > 0) ended_.push_back({quoted.request, quoted});
}

void QuoteDesk::found(const ActorName& actor) {
  scheduler_is_here_ |= actor == kScheduler;
}

void QuoteDesk::lost(const ActorLost& lost) {
  if (lost.actor != kScheduler) return;
  scheduler_is_here_ = false;
  while (!open_.empty()) fail(*open_.begin(), "The scheduler was lost (" + lost.why + "); try again.");
}

void QuoteDesk::wake(Instant now, Outbox& out) {
  for (; !due_.empty() && due_.front().first <= now; due_.pop_front()) {
    fail(due_.front().second, "The scheduler did not answer within " + std::to_string(within_.count()) +
                                  " ms (quote_within); try again.");
  }
  if (!due_.empty()) out.set_timer(kTimer, due_.front().first);
}

void QuoteDesk::fail(RequestId question, std::string why) {
  if (open_.erase(question) > 0) refuse(question, ApiError{ErrorCode::unavailable, std::move(why), "", Millis{0}});
}

}  // namespace sangam
