// One letter for all that has ended since the last.
#include "gateway/core/served_desk.hpp"

#include <utility>

namespace sangam {
namespace {

const ActorName kOracle("oracle");
constexpr Millis kTellEvery{500};
constexpr std::size_t kRequestsMax = 4096;  // In one letter: some hundred KiB.

}  // namespace

void ServedDesk::ended(ServedRequest request, Instant now, Outbox& out) {
  if (!oracle_is_here_ || requests_.size() >= kRequestsMax) return;
  requests_.push_back(std::move(request));
  if (requests_.size() == 1) out.set_timer(kTimer, now + kTellEvery);
}

void ServedDesk::found(const ActorName& actor) {
  oracle_is_here_ |= actor == kOracle;
}

void ServedDesk::lost(const ActorName& actor) {
  if (actor != kOracle) return;
  oracle_is_here_ = false;
  requests_.clear();
}

void ServedDesk::wake(Outbox& out) {
  if (requests_.empty()) return;
  out.send(kOracle, Served{gateway_, std::exchange(requests_, {})});
}

}  // namespace sangam
