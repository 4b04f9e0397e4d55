// Two workers, a queue and letters that take their time: whoever leaves or dies at whatever moment, every request has
// all of its tokens once, and nothing of it is left anywhere.
#include <doctest/doctest.h>

#include <random>

#include "actors/queue/queue_core.hpp"
#include "tests/unit/worker/worker_kit.hpp"

using namespace sangam;
using namespace sangam::worker_kit;

namespace {

const ActorName kGiver("worker/1"), kTaker("worker/2");
constexpr std::uint64_t kLength = 6;  ///< Tokens of each request; the n-th is n.

/// Letters between any two arrive in order, and else in any.
class SmallMesh {
 public:
  explicit SmallMesh(std::uint64_t seed) : random_(seed), queue_(queue_options()) {
    queue_.start(at(0), out_);
    for (const ActorName& worker : {kGiver, kTaker}) begin_worker(worker, 1);
    for (const ActorName& actor : {kGateway, kScheduler, kGiver, kTaker}) queue_.on(ActorFound{actor, Incarnation{1}}, at(0), out_);
    out_.clear();
    settle();
  }

  void submit(std::uint64_t number) { submit_again(number, asked_[number]); }
  void cancel(std::uint64_t number) {
    asked_.at(number).left = true;
    send(kGateway, kQueue, Cancel{RequestId{number}});
  }
  /// It comes back empty. Of what it had said, a part still arrives.
  void kill(const ActorName& worker) {
    for (auto& [link, letters] : links_) {
      if (link.second == worker) letters.clear();
      if (link.first == worker) letters.resize(letters.empty() ? 0 : draw(letters.size() + 1));
    }
    begin_worker(worker, ++incarnation_);
    for (const ActorName& hearer : {kQueue, kGateway, kScheduler, kGiver, kTaker}) {
      if (hearer == worker) continue;
      send(worker, hearer, ActorLost{worker, Incarnation{1}, "killed"});
      send(worker, hearer, ActorFound{worker, Incarnation{incarnation_}});
    }
  }

  /// One letter, or one step of a worker. False when there is neither.
  bool move() {
    std::vector<std::pair<ActorName, ActorName>> ready;
    for (const auto& [link, letters] : links_) {
      if (!letters.empty()) ready.push_back(link);
    }
    std::vector<ActorName> busy;
    for (auto& [name, side] : workers_) {
      if (next_of(side)) busy.push_back(name);
    }
    if (ready.empty() && busy.empty()) return false;
    if (!busy.empty() && (ready.empty() || draw(3) == 0)) return step(busy[draw(busy.size())]), true;
    const auto link = ready[draw(ready.size())];
    const Message letter = std::move(links_[link].front());
    links_[link].pop_front();
    // Who has a run is known long before that one's loss is noticed.
    for (auto& known = links_[{kQueue, kGateway}]; std::holds_alternative<ActorLost>(letter) && !known.empty();) {
      const Message first = std::move(known.front());
      known.pop_front();
      deliver_to(kGateway, first);
    }
    deliver_to(link.second, letter);
    return true;
  }
  void settle() {
    while (move()) {
    }
  }

  void check_at_rest() {
    for (auto& [name, side] : workers_) {
      CAPTURE(name);
      CHECK(side->runner.live.empty());
      CHECK(side->runner.prefilling.empty());
      expired_ += side->runner.set_aside.size();
      side->worker.wake(Timer{3}, at(60'000'000), side->out);
      CHECK(side->runner.set_aside.empty());
    }
    Outbox out;
    queue_.wake(Timer{2}, at(0), out);
    for (const Outbox::Letter& letter : out.letters) {
      const auto& status = std::get<QueueStatus>(letter.message);
      CHECK(status.running == 0);
      CHECK(status.waiting == 0);
    }
    for (const auto& [number, asked] : asked_) {
      CAPTURE(number);
      CHECK((asked.left || asked.have == kLength));
    }
  }
  [[nodiscard]] std::size_t moved() const { return moved_; }
  [[nodiscard]] std::size_t early() const { return early_; }
  [[nodiscard]] std::size_t expired() const { return expired_; }
  std::size_t draw(std::size_t below) { return std::size_t(random_() % below); }

 private:
  struct Asked {
    Attempt attempt = 0;
    std::uint64_t have = 0;
    bool left = false;
    ActorName worker;  ///< Who has it, as the queue says.
  };
  struct Progress {
    Attempt attempt = 1;
    std::uint64_t next = 0;
    bool told = false;  ///< Something, since it came here.
  };

  static QueueOptions queue_options() {
    QueueOptions options;
    options.model = kModel;
    return options;
  }
  void begin_worker(const ActorName& name, std::uint64_t incarnation) {
    WorkerOptions as = options();
    as.name = name;
    as.incarnation = Incarnation{incarnation};
    as.role = name == kGiver ? WorkerRole::prefill : WorkerRole::decode;
    as.holder = "/run/holder.sock";
    as.running_max = 50;
    workers_[name] = std::make_unique<Desk>(true, as);
    workers_[name]->runner.begins = true;
    progress_[name].clear();
    for (const ActorName& actor : {kQueue, kGiver, kTaker}) workers_[name]->hear(ActorFound{actor, Incarnation{1}});
  }

  void send(const ActorName& from, const ActorName& to, Message message) {
    if (to != kLifecycle) links_[{from, to}].push_back(std::move(message));
  }
  void pass(const ActorName& from, Outbox& out) {
    for (Outbox::Letter& letter : out.letters) send(from, letter.to, std::move(letter.message));
    out.clear();
  }

  void deliver_to(const ActorName& to, const Message& letter) {
    if (to == kGateway) return hear_gateway(letter);
    if (to == kScheduler) return hear_scheduler(letter);
    if (to == kQueue) {
      (void)deliver(queue_, letter, at(0), out_);
      return pass(kQueue, out_);
    }
    const Run* run = std::get_if<Run>(&letter);
    if (const auto* offered = std::get_if<HandOver>(&letter)) run = &offered->run;
    Desk& desk = *workers_.at(to);
    desk.out.clear();
    if (std::holds_alternative<ReserveKv>(letter)) {
      const bool full = draw(8) == 0;
      desk.runner.next_reserve = full ? Result<void>(make_error(ErrorCode::exhausted, "full")) : Result<void>();
    }
    const auto& waiting = desk.runner.set_aside;
    early_ += run != nullptr && std::any_of(waiting.begin(), waiting.end(), [&](const ReserveKv& wish) {
      return wish.request == run->request && wish.attempt == run->attempt;
    });
    const auto before = desk.runner.live.size() + desk.runner.cancelled.size();
    (void)deliver(desk.worker, letter, at(0), desk.out);
    const bool taken = desk.runner.live.size() + desk.runner.cancelled.size() != before;
    if (run != nullptr && taken) progress_[to][run->request] = {run->attempt, run->generated.size()};
    pass(to, desk.out);
  }

  /// Gives the queue's requests to the giver, for the taker to go on with.
  void hear_scheduler(const Message& letter) {
    if (const auto* waits = std::get_if<Enqueued>(&letter))
      send(kScheduler, kQueue, Dispatch{waits->request, waits->attempt, kGiver, Micros{1}, {kTaker}});
    if (std::holds_alternative<RunMoved>(letter)) ++moved_;
  }
  void hear_gateway(const Message& letter) {
    if (const auto* lost = std::get_if<Interrupted>(&letter)) return lose(std::uint64_t(lost->request), lost->attempt);
    if (const auto* started = std::get_if<Started>(&letter)) {
      Asked& asked = asked_.at(std::uint64_t(started->request));
      if (asked.attempt == started->attempt) asked.worker = started->worker;
    }
    if (const auto* lost = std::get_if<ActorLost>(&letter)) {
      for (auto& [number, asked] : asked_) {
        if (asked.worker == lost->actor) lose(number, asked.attempt);
      }
    }
    const auto* said = std::get_if<TokensProduced>(&letter);
    if (said == nullptr) return;
    Asked& asked = asked_.at(std::uint64_t(said->request));
    if (asked.left || said->attempt != asked.attempt) return;
    REQUIRE(said->first <= asked.have);  // no gap
    for (std::size_t i = 0; i < said->tokens.size(); ++i) REQUIRE(said->tokens[i] == said->first + i);
    asked.have = std::max(asked.have, said->first + said->tokens.size());
    const bool ends = said->finish == FinishReason::failed || said->finish == FinishReason::cancelled;
    if (ends) lose(std::uint64_t(said->request), said->attempt);
  }
  void lose(std::uint64_t number, Attempt attempt) {
    Asked& asked = asked_.at(number);
    if (!asked.left && asked.attempt == attempt && asked.have < kLength) submit_again(number, asked);
  }
  void submit_again(std::uint64_t number, Asked& asked) {
    Submit submit;
    submit.request = RequestId{number};
    submit.attempt = ++asked.attempt;
    asked.worker = {};
    submit.model = kModel;
    submit.prompt = {1, 2, 3};
    for (std::uint64_t i = 0; i < asked.have; ++i) submit.generated.push_back(TokenId(i));
    submit.tokens_to = kGateway;
    send(kGateway, kQueue, submit);
  }

  /// A run that can go on there.
  std::optional<RequestId> next_of(const std::unique_ptr<Desk>& side) {
    for (const RequestId request : side->runner.live) {
      const auto& kept = side->runner.prefilling;
      const bool waits = std::find(kept.begin(), kept.end(), request) != kept.end();
      for (auto& [name, progress] : progress_) {
        if (workers_.at(name) == side && !(waits && progress[request].told)) return request;
      }
    }
    return std::nullopt;
  }
  void step(const ActorName& name) {
    Desk& desk = *workers_.at(name);
    if (!desk.runner.begun.empty()) {
      desk.out.clear();
      desk.worker.step(at(0), desk.out);
      pass(name, desk.out);
      if (!next_of(workers_.at(name))) return;
    }
    const RequestId request = *next_of(workers_.at(name));
    Progress& progress = progress_[name][request];
    TokensProduced said = tokens(std::uint64_t(request), progress.next++);
    said.attempt = progress.attempt;
    if (progress.next == kLength) said.finish = FinishReason::length;
    StepOutcome outcome{{said}, {}, Micros{1}};
    if (!std::exchange(progress.told, true)) outcome.prefills = {{request, Tokens{3}, true}};
    desk.step(std::move(outcome), at(0));
    pass(name, desk.out);
  }

  std::mt19937_64 random_;
  QueueCore queue_;
  Outbox out_;
  std::map<ActorName, std::unique_ptr<Desk>> workers_;
  std::map<ActorName, std::map<RequestId, Progress>> progress_;
  std::map<std::pair<ActorName, ActorName>, std::deque<Message>> links_;
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t incarnation_ = 1;
  std::size_t moved_ = 0;
  std::size_t early_ = 0;    ///< Of these, with pages that had been set aside for them.
  std::size_t expired_ = 0;  ///< Set aside at rest, by a worker that was asked as its former self.
};

}  // namespace

TEST_CASE("random cancels and deaths while runs change the worker") {
  std::size_t moved = 0;
  std::size_t early = 0;
  std::size_t expired = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    SmallMesh mesh(seed);
    for (std::uint64_t number = 1; number <= 12; ++number) {
      mesh.submit(number);
      for (std::size_t moves = mesh.draw(20); moves > 0; --moves) (void)mesh.move();
      if (mesh.draw(4) == 0) mesh.cancel(1 + mesh.draw(number));
      if (mesh.draw(4) == 0) mesh.kill(mesh.draw(2) == 0 ? kGiver : kTaker);
    }
    mesh.settle();
    mesh.check_at_rest();
    moved += mesh.moved();
    early += mesh.early();
    expired += mesh.expired();
  }
  CHECK(moved > 1000);
  CHECK(early > 500);
  CHECK(expired < 10);  // all others have been given back
}
