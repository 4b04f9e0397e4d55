// One heap of what falls due; letters lie in bags beside it, since they are large and the heap moves its entries.
#include "sim/world/world.hpp"

#include <algorithm>

namespace sangam::sim {
namespace {

constexpr std::uint32_t kNoLetter = UINT32_MAX;
constexpr std::size_t kComplaintsMax = 1000;

}  // namespace

void World::settle(const ActorName& name, std::unique_ptr<Inhabitant> inhabitant, Incarnation incarnation) {
  const auto [place, is_new] = index_.try_emplace(name, ActorIndex(actors_.size()));
  if (is_new) actors_.emplace_back();
  const ActorIndex self = place->second;
  actors_[self].name = name;
  actors_[self].inhabitant = std::move(inhabitant);
  actors_[self].incarnation = incarnation;
  ++actors_[self].life;
  for (ActorIndex other = 0; other < actors_.size(); ++other) {
    if (other == self || !actors_[other].inhabitant) continue;
    post(self, other, ActorFound{name, incarnation});
    post(other, self, ActorFound{actors_[other].name, actors_[other].incarnation});
  }
}

void World::kill(const ActorName& name, const std::string& why) {
  const ActorIndex self = index_.at(name);
  actors_[self].inhabitant.reset();
  actors_[self].timers.clear();
  ++actors_[self].life;
  for (ActorIndex other = 0; other < actors_.size(); ++other) {
    // From the hearer itself: nothing from the dead arrives.
    if (actors_[other].inhabitant) post(other, other, ActorLost{name, actors_[self].incarnation, why});
  }
}

void World::post(ActorIndex from, ActorIndex to, Message message) {
  std::uint32_t bag = 0;
  if (empty_bags_.empty()) {
    bag = std::uint32_t(bags_.size());
    bags_.emplace_back();
  } else {
    bag = empty_bags_.back();
    empty_bags_.pop_back();
  }
  bags_[bag] = {std::move(message), from, actors_[from].life, actors_[to].life};
  due_.push({now_ + letter_takes_, causes_++, to, bag, {}});
}

void World::set_timer(ActorIndex actor, Timer timer, Instant at) {
  auto& timers = actors_[actor].timers;
  const auto known = std::find_if(timers.begin(), timers.end(), [&](const auto& t) { return t.first == timer; });
  (known == timers.end() ? timers.emplace_back(timer, 0) : *known).second = causes_;
  due_.push({std::max(at, now_), causes_++, actor, kNoLetter, timer});
}

void World::run_until(Instant end) {
  while (!due_.empty() && due_.top().at <= end) {
    const Due due = due_.top();
    due_.pop();
    now_ = due.at;
    happen(due);
  }
  now_ = std::max(now_, end);
}

void World::happen(const Due& due) {
  Settled& actor = actors_[due.actor];
  if (due.letter != kNoLetter) {
    const Bag bag = std::move(bags_[due.letter]);
    empty_bags_.push_back(due.letter);
    // What was on the way to or from the dead is gone.
    if (bag.to_life != actor.life || bag.from_life != actors_[bag.from].life) return;
    ++letters_;
    actor.inhabitant->hear(bag.message, now_, outbox_);
  } else {
    const auto set = std::find_if(actor.timers.begin(), actor.timers.end(),
                                  [&](const auto& t) { return t.first == due.timer; });
    if (set == actor.timers.end() || set->second != due.cause) return;
    std::swap(*set, actor.timers.back());
    actor.timers.pop_back();
    actor.inhabitant->wake(due.timer, now_, outbox_);
  }
  carry_out(due.actor, outbox_);
}

void World::carry_out(ActorIndex actor, Outbox& out) {
  for (Outbox::Letter& letter : out.letters) {
    // Whom nobody has settled is as if away.
    if (const auto to = index_.find(letter.to); to != index_.end()) post(actor, to->second, std::move(letter.message));
  }
  for (const Outbox::Alarm& alarm : out.alarms) set_timer(actor, alarm.timer, alarm.at);
  for (const LogLine& line : out.logs) note(actors_[actor], line);
  out.clear();
}

void World::note(const Settled& actor, const LogLine& line) {
  if (line.level < LogLevel::warning || complaints_.size() >= kComplaintsMax) return;
  std::string text = actor.name.text() + " " + line.event;
  for (const auto& [key, value] : line.fields) text += " " + key + "=" + value;
  complaints_.push_back(std::move(text));
}

}  // namespace sangam::sim
