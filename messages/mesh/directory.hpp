// Who is where. Delivers to actors of this process at once and hands letters for others to their peer's
// outlet; tells every local actor who comes and goes.
#pragma once

#include <atomic>
#include <limits>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

#include "messages/mesh/post_office.hpp"

namespace sangam::mesh {

/// Position of a peer in the registry.
using PeerIndex = std::size_t;

/// Where letters for one peer leave this process. Called by any thread, under the directory's lock, so that
/// what one thread says is carried in the order in which it was said.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void letter(const EnvelopePtr& letter) = 0;
  virtual void opened(const ActorName& actor, Incarnation incarnation) = 0;
  virtual void closed(const ActorName& actor, const std::string& why) = 0;
};

/// Thread-safe. Letters pass under a shared lock; comings and goings under an exclusive one, so that every
/// actor sees them in the same order and none hears of a letter's sender after the letter.
class Directory {
 public:
  void attach(const ActorName& actor, Incarnation incarnation, Mailbox mailbox);
  void detach(const ActorName& actor, const std::string& why);
  void send(Envelope envelope);
  [[nodiscard]] std::vector<ActorFound> present() const;

  /// From here on `outlet` takes letters for this peer; it is told of every actor here, first of those that
  /// are here already. It must live until `close`.
  void open(PeerIndex peer, Outlet& outlet);
  /// All actors of the peer are lost; its outlet is not called any more when this returns.
  void close(PeerIndex peer, const std::string& why);
  /// An actor of an open peer. False where the name belongs to somebody else: an actor here, or one elsewhere
  /// of the same or a higher incarnation.
  [[nodiscard]] bool found(PeerIndex peer, const ActorName& actor, Incarnation incarnation);
  void lost(PeerIndex peer, const ActorName& actor, const std::string& why);
  /// A letter that came from a peer, to an actor here.
  void deliver(const EnvelopePtr& letter);

  [[nodiscard]] std::uint64_t letters_local() const { return letters_local_; }
  [[nodiscard]] std::uint64_t letters_away() const { return letters_away_; }

 private:
  static constexpr PeerIndex kHere = std::numeric_limits<PeerIndex>::max();
  struct Entry {
    Incarnation incarnation{};
    PeerIndex peer = kHere;
    Mailbox mailbox;  // Of an actor here.
  };
  using Entries = std::map<ActorName, Entry>;

  [[nodiscard]] EnvelopePtr notice(const ActorName& to, Message message);
  void tell_others(const ActorName& about, const Message& message);
  /// Returns the entry after the removed one.
  Entries::iterator remove(Entries::iterator gone, const std::string& why);

  mutable std::shared_mutex mutex_;
  Entries actors_;
  std::map<PeerIndex, Outlet*> outlets_;  // Of the open peers.
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::uint64_t> letters_local_{0};
  std::atomic<std::uint64_t> letters_away_{0};
};

}  // namespace sangam::mesh
