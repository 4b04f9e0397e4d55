// The commands of operators that are under way: who waits for which, and that each is answered once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

class CommandDesk {
 public:
  /// Ids begin above those of former incarnations.
  CommandDesk(ActorName gateway, Incarnation incarnation);

  /// Under its id it is answered once by `take_ended`: at once where no lifecycle is here.
  std::uint64_t open(Command command, Outbox& out);
  /// Nobody waits any more. What is under way goes on: others may wait for the same.
  void close(std::uint64_t command) { open_.erase(command); }

  void ended(const CommandEnded& ended);
  void found(const ActorName& actor);
  void lost(const ActorLost& lost);

  [[nodiscard]] bool lifecycle_is_here() const { return lifecycle_is_here_; }
  [[nodiscard]] std::vector<CommandEnded> take_ended() { return std::exchange(ended_, {}); }

 private:
  void fail(std::uint64_t command, std::string why);

  ActorName gateway_;
  std::uint64_t next_;
  std::map<std::uint64_t, CommandVerb> open_;
  std::vector<CommandEnded> ended_;
  bool lifecycle_is_here_ = false;
};

}  // namespace sangam
