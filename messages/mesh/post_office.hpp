// Where every letter of a process passes: to an actor in this process, or to the node that carries it to
// another one. Shells use it; cores know nothing of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "messages/vocabulary/message.hpp"

namespace sangam {

/// Takes a letter off the carrier's hands at once: puts it into a mailbox, never works on it and never calls
/// the post office. A letter from another node occupies its sender's credit until the last pointer to it is
/// gone, so keep what you need of it and not the letter.
using Mailbox = std::function<void(EnvelopePtr)>;

/// Thread-safe.
class PostOffice {
 public:
  virtual ~PostOffice() = default;

  /// Opens an actor of this process and tells every other actor, here and at the peers, by ActorFound;
  /// the new one is told of all that are there already. Attaching a name again under a higher incarnation
  /// first tells of the loss of the former one.
  virtual void attach(const ActorName& actor, Incarnation incarnation, Mailbox mailbox) = 0;
  /// Closes it and tells the others by ActorLost. Its mailbox is not called any more when this returns.
  virtual void detach(const ActorName& actor, const std::string& why) = 0;
  /// Fills in the id. A letter to an actor that is away is dropped and counted: ActorLost has told, or will
  /// tell, whoever must act on it.
  virtual void send(Envelope envelope) = 0;
  /// All actors known now, local and remote, in the order of their names.
  [[nodiscard]] virtual std::vector<ActorFound> present() const = 0;
};

}  // namespace sangam
