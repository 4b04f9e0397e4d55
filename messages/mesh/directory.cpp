// Local delivery, and the announcements of presence.
#include "messages/mesh/directory.hpp"

#include <mutex>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam::mesh {

EnvelopePtr Directory::notice(const ActorName& to, Message message) {
  auto letter = std::make_shared<Envelope>();
  letter->from = ActorName("mesh");
  letter->to = to;
  letter->id = next_id_++;
  letter->message = std::move(message);
  return letter;
}

void Directory::tell_others(const ActorName& about, const Message& message) {
  for (auto& [name, entry] : actors_) {
    if (entry.mailbox && name != about) entry.mailbox(notice(name, message));
  }
}

Directory::Entries::iterator Directory::remove(Entries::iterator gone, const std::string& why) {
  const bool was_here = gone->second.peer == kHere;
  const ActorLost loss{gone->first, gone->second.incarnation, why};
  auto next = actors_.erase(gone);
  tell_others(loss.actor, loss);
  if (was_here) {
    for (auto& [peer, outlet] : outlets_) outlet->closed(loss.actor, why);
  }
  return next;
}

void Directory::attach(const ActorName& actor, Incarnation incarnation, Mailbox mailbox) {
  SANGAM_ASSERT(mailbox != nullptr && !actor.empty(), actor);
  std::unique_lock lock(mutex_);
  if (auto former = actors_.find(actor); former != actors_.end()) {
    SANGAM_ASSERT(former->second.peer != kHere || incarnation > former->second.incarnation,
                  "an actor is attached again without a higher incarnation", actor, incarnation);
    remove(former, "replaced by incarnation " + std::to_string(std::uint64_t(incarnation)));
  }
  const Entry& entry = actors_[actor] = Entry{incarnation, kHere, std::move(mailbox)};
  for (auto& [name, other] : actors_) {
    if (name != actor) entry.mailbox(notice(actor, ActorFound{name, other.incarnation}));
  }
  tell_others(actor, ActorFound{actor, incarnation});
  for (auto& [peer, outlet] : outlets_) outlet->opened(actor, incarnation);
}

void Directory::detach(const ActorName& actor, const std::string& why) {
  std::unique_lock lock(mutex_);
  auto entry = actors_.find(actor);
  if (entry != actors_.end() && entry->second.peer == kHere) remove(entry, why);
}

void Directory::send(Envelope envelope) {
  envelope.id = next_id_++;
  auto letter = std::make_shared<const Envelope>(std::move(envelope));
  std::shared_lock lock(mutex_);
  auto receiver = actors_.find(letter->to);
  if (receiver == actors_.end()) {
    ++letters_away_;
  } else if (receiver->second.peer == kHere) {
    ++letters_local_;
    receiver->second.mailbox(std::move(letter));
  } else {
    outlets_.at(receiver->second.peer)->letter(letter);
  }
}

std::vector<ActorFound> Directory::present() const {
  std::shared_lock lock(mutex_);
  std::vector<ActorFound> all;
  all.reserve(actors_.size());
  for (const auto& [name, entry] : actors_) all.push_back({name, entry.incarnation});
  return all;
}

void Directory::open(PeerIndex peer, Outlet& outlet) {
  std::unique_lock lock(mutex_);
  outlets_[peer] = &outlet;
  for (const auto& [name, entry] : actors_) {
    if (entry.peer == kHere) outlet.opened(name, entry.incarnation);
  }
}

void Directory::close(PeerIndex peer, const std::string& why) {
  std::unique_lock lock(mutex_);
  outlets_.erase(peer);
  for (auto entry = actors_.begin(); entry != actors_.end();) {
    entry = entry->second.peer == peer ? remove(entry, why) : std::next(entry);
  }
}

bool Directory::found(PeerIndex peer, const ActorName& actor, Incarnation incarnation) {
  std::unique_lock lock(mutex_);
  SANGAM_ASSERT(outlets_.contains(peer), "an actor of a peer that is not open", actor, peer);
  if (auto former = actors_.find(actor); former != actors_.end()) {
    if (former->second.peer == peer && former->second.incarnation == incarnation) return true;
    if (former->second.peer == kHere || incarnation <= former->second.incarnation) return false;
    remove(former, "replaced by incarnation " + std::to_string(std::uint64_t(incarnation)));
  }
  actors_[actor] = Entry{incarnation, peer, nullptr};
  tell_others(actor, ActorFound{actor, incarnation});
  return true;
}

void Directory::lost(PeerIndex peer, const ActorName& actor, const std::string& why) {
  std::unique_lock lock(mutex_);
  auto entry = actors_.find(actor);
  if (entry != actors_.end() && entry->second.peer == peer) remove(entry, why);
}

void Directory::deliver(const EnvelopePtr& letter) {
  std::shared_lock lock(mutex_);
  auto receiver = actors_.find(letter->to);
  if (receiver == actors_.end() || receiver->second.peer != kHere) {
    ++letters_away_;
  } else {
    receiver->second.mailbox(letter);
  }
}

}  // namespace sangam::mesh
