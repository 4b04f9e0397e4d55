// Bookkeeping of commands.
#include "gateway/core/command_desk.hpp"

namespace sangam {
namespace {

const ActorName kLifecycle("lifecycle");

}  // namespace

CommandDesk::CommandDesk(ActorName gateway, Incarnation incarnation)
    : gateway_(std::move(gateway)), next_(std::uint64_t(incarnation) << 32) {}

std::uint64_t CommandDesk::open(Command command, Outbox& out) {
  command.command = ++next_;
  command.answer_to = gateway_;
  open_[command.command] = command.verb;
  if (lifecycle_is_here_) {
    out.send(kLifecycle, command);
  } else {
    fail(command.command, "the lifecycle is away at the moment; try again");
  }
  return command.command;
}

void CommandDesk::ended(const CommandEnded& ended) {
  if (open_.erase(ended.command) > 0) ended_.push_back(ended);
}

void CommandDesk::found(const ActorName& actor) {
  lifecycle_is_here_ |= actor == kLifecycle;
}

void CommandDesk::lost(const ActorLost& lost) {
  if (lost.actor != kLifecycle) return;
  lifecycle_is_here_ = false;
  while (!open_.empty())
    fail(open_.begin()->first, "the lifecycle was lost (" + lost.why + "); look what has become of it, and repeat");
}

void CommandDesk::fail(std::uint64_t command, std::string why) {
  CommandEnded failed;
  failed.command = command;
  failed.code = ErrorCode::unavailable;
  failed.why = std::move(why);
  ended(failed);
}

}  // namespace sangam
