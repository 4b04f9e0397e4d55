// Virtual time: the actors of a mesh, their letters and their timers, in the order in which they fall due.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "messages/vocabulary/outbox.hpp"

namespace sangam::sim {

/// Whatever has a mailbox: a core that also runs in production, or a model of a part that does not.
class Inhabitant {
 public:
  virtual ~Inhabitant() = default;
  virtual void hear(const Message& message, Instant now, Outbox& out) = 0;
  virtual void wake(Timer timer, Instant now, Outbox& out) = 0;
};

/// A production core as it is.
template <class Core>
class Resident final : public Inhabitant {
 public:
  template <class... Arguments>
  explicit Resident(Arguments&&... arguments) : core_(std::forward<Arguments>(arguments)...) {}

  void hear(const Message& message, Instant now, Outbox& out) override {
    (void)deliver(core_, message, now, out);
  }
  void wake(Timer timer, Instant now, Outbox& out) override {
    if constexpr (requires { core_.wake(timer, now, out); }) core_.wake(timer, now, out);
  }

  [[nodiscard]] Core& core() { return core_; }

 private:
  Core core_;
};

/// Single-threaded and deterministic: what falls due at the same instant happens in the order in which it was
/// caused. A letter takes `letter_takes`, so two actors' letters keep their order, as in the mesh.
class World {
 public:
  explicit World(Micros letter_takes) : letter_takes_(letter_takes) {}

  /// The actor hears of everyone who lives, and everyone of it, as a mesh would tell them.
  void settle(const ActorName& name, std::unique_ptr<Inhabitant> inhabitant, Incarnation incarnation = Incarnation{1});
  /// Its letters, those to it and its timers are gone; all others hear ActorLost.
  void kill(const ActorName& name, const std::string& why);

  /// An inhabitant's own doing, outside of any letter: what it says and sets in `act(now, out)` is carried out.
  template <class Act>
  void act(const ActorName& name, Act act) {
    Outbox out;
    act(now_, out);
    carry_out(index_.at(name), out);
  }

  /// Runs what falls due up to and including `end`.
  void run_until(Instant end);

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t letters() const { return letters_; }
  /// Log lines of warnings and errors, up to the first thousand.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  using ActorIndex = std::uint32_t;

  struct Settled {
    ActorName name;
    std::unique_ptr<Inhabitant> inhabitant;  // Null when it was killed.
    Incarnation incarnation{};
    std::uint32_t life = 0;  // Counts births and deaths.
    std::vector<std::pair<Timer, std::uint64_t>> timers;  // And the event that will wake it.
  };
  struct Due {
    Instant at{};
    std::uint64_t cause = 0;  // Counts events in the order of their making.
    ActorIndex actor = 0;
    std::uint32_t letter = 0;  // A place in bags_; kNoLetter for a timer.
    Timer timer{};

    [[nodiscard]] bool operator>(const Due& other) const {
      return at != other.at ? at > other.at : cause > other.cause;
    }
  };
  struct Bag {
    Message message;
    ActorIndex from = 0;
    std::uint32_t from_life = 0;
    std::uint32_t to_life = 0;
  };

  void carry_out(ActorIndex actor, Outbox& out);
  void post(ActorIndex from, ActorIndex to, Message message);
  void set_timer(ActorIndex actor, Timer timer, Instant at);
  void happen(const Due& due);
  void note(const Settled& actor, const LogLine& line);

  Micros letter_takes_;
  Instant now_{};
  std::vector<Settled> actors_;
  std::unordered_map<ActorName, ActorIndex> index_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<Bag> bags_;
  std::vector<std::uint32_t> empty_bags_;
  Outbox outbox_;
  std::uint64_t causes_ = 0;
  std::uint64_t letters_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace sangam::sim
