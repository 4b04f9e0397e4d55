// A hundred thousand random events against a naive model of the queue's promises: no request is lost, none
// runs twice in one attempt, limits hold, and all accounts return to zero.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/queue/queue_kit.hpp"

using namespace sangam;
using namespace sangam::queue_kit;

namespace {

constexpr std::int64_t kRequestsMax = 40;
constexpr std::int64_t kTokensMax = 6'000;
constexpr std::int64_t kTenantRequestsMax = 20;
constexpr std::int64_t kTenantTokensMax = 3'000;
constexpr std::int64_t kInterruptedKept = 300;

QueueOptions options() {
  QueueOptions options;
  options.waiting_requests_max = kRequestsMax;
  options.waiting_tokens_max = Tokens(kTokensMax);
  options.tenant_default = {.weight = 1,
                            .waiting_requests_max = kTenantRequestsMax,
                            .waiting_tokens_max = Tokens(kTenantTokensMax)};
  options.tenants[TenantId("b")] = options.tenant_default;
  options.tenants[TenantId("b")].weight = 4;
  options.interrupted_kept = Millis(kInterruptedKept);
  return options;
}

enum class Phase { waiting, running, interrupted };

/// What the test itself believes of a request, by rules so simple that they can be read off.
struct Believed {
  Submit submit;
  Phase phase = Phase::waiting;
  bool cancelled = false;
  bool lowered = false;
  std::int64_t expires_at = -1;
  std::int64_t due_at = -1;
  std::int64_t forgotten_at = -1;
  std::int64_t cost = 0;
  ActorName worker;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    present_ = {kGateway, kOther, kScheduler, kWorker, kOtherWorker};
    event([&] { desk_.tell(0, ActorFound{kOther, Incarnation(1)}); });
  }

  void step() {
    advance(pick(0, 4));
    const std::int64_t what = pick(0, 99);
    if (what < 35) return submit_new();
    if (what < 42) return resubmit();
    if (what < 65) return dispatch_one();
    if (what < 84) return end_one();
    if (what < 92) return cancel_one();
    if (what < 95) return verdict();
    if (what < 98) return come_or_go(actors_[std::size_t(pick(0, 4))]);
    bogus();
  }

  /// Everyone comes, all that waits runs, all that runs ends: then nothing may be left.
  void drain() {
    for (const ActorName& actor : actors_)
      if (!present_.contains(actor)) come_or_go(actor);
    while (!requests_.empty()) {
      advance(kInterruptedKept);
      const auto copy = requests_;
      for (const auto& [id, r] : copy) {
        if (!requests_.contains(id)) continue;
        if (r.phase == Phase::waiting) dispatch_to(id, kWorker);
        if (requests_.contains(id) && requests_[id].phase == Phase::running) end(id);
      }
    }
  }
  [[nodiscard]] QueueStatus status() { return desk_.status(now_); }
  /// Submits requests that fill the limits exactly, one more, and says how many were accepted.
  int fill() {
    int accepted = 0;
    for (std::int64_t i = 0; i <= kRequestsMax; ++i) {
      const char* tenants[] = {"x", "y", "z"};
      desk_.tell(now_, queue_kit::submit(++last_, kTokensMax / kRequestsMax, tenants[i % 3]));
      accepted += int(desk_.said<Accepted>().size());
    }
    return accepted;
  }

  std::int64_t runs = 0, refusals = 0, interruptions = 0, expiries = 0, lowerings = 0;

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  /// A random request in this phase; 0 where there is none.
  RequestId any(Phase phase) {
    std::vector<RequestId> found;
    for (const auto& [id, r] : requests_)
      if (r.phase == phase) found.push_back(id);
    return found.empty() ? RequestId{0} : found[std::size_t(pick(0, std::int64_t(found.size()) - 1))];
  }

  // --- Events, each with what must come of it ---

  void submit_new() {
    Submit s = queue_kit::submit(++last_, pick(20, 400), pick(0, 1) ? "a" : "b");
    s.service_class = ServiceClass(pick(0, 2));
    if (s.service_class == ServiceClass::deadline) s.ttft_in = Millis(pick(0, 80));
    s.requeue_when_late = pick(0, 1);
    if (pick(0, 3) == 0) s.expires_in = Millis(pick(1, 100));
    s.tokens_to = pick(0, 1) ? kGateway : kOther;
    const std::int64_t cost = 10 + s.sampling.max_tokens.count();
    const bool fits = waiting("").first + 1 <= kRequestsMax && waiting("").second + cost <= kTokensMax &&
                      waiting(s.tenant.text()).first + 1 <= kTenantRequestsMax &&
                      waiting(s.tenant.text()).second + cost <= kTenantTokensMax;
    if (fits) believe(s, cost);
    event([&] { desk_.tell(now_, s); });
    CHECK(desk_.said<Accepted>().size() == (fits ? 1U : 0U));
    CHECK(desk_.said<Refused>().size() == (fits ? 0U : 1U));
    refusals += !fits;
  }

  void believe(const Submit& s, std::int64_t cost) {
    Believed& r = requests_[s.request];
    const bool begun = !s.generated.empty();
    r.submit = s;
    r.phase = Phase::waiting;
    r.cancelled = false;
    r.cost = cost;
    r.forgotten_at = -1;
    r.expires_at = begun || s.expires_in == Millis(0) ? -1 : now_ + s.expires_in.count();
    r.lowered |= begun;
    const bool due = s.service_class == ServiceClass::deadline && !r.lowered;
    r.due_at = due ? now_ + s.ttft_in.count() : -1;
  }

  void resubmit() {
    RequestId id = any(pick(0, 4) ? Phase::interrupted : Phase(pick(0, 2)));
    if (id == RequestId{0}) return;
    Believed& r = requests_[id];
    Submit s = again(r.submit, r.submit.attempt + 1);
    if (r.phase != Phase::waiting && pick(0, 1)) s.generated.assign(std::size_t(pick(1, 8)), TokenId(3));
    const bool told = r.phase == Phase::running && !r.cancelled;
    believe(s, r.cost);
    event([&] { desk_.tell(now_, s); });
    CHECK(desk_.said<Accepted>().size() == 1);
    CHECK(desk_.said<Cancel>().size() == (told ? 1U : 0U));
  }

  void dispatch_one() {
    const RequestId id = any(Phase::waiting);
    if (id != RequestId{0}) dispatch_to(id, pick(0, 1) ? kWorker : kOtherWorker);
  }

  void dispatch_to(RequestId id, const ActorName& worker) {
    Believed& r = requests_[id];
    const Attempt attempt = r.submit.attempt;
    const bool runs_now = present_.contains(worker) && present_.contains(r.submit.tokens_to);
    if (!present_.contains(r.submit.tokens_to)) {
      requests_.erase(id);
    } else if (runs_now) {
      CHECK(executed_.insert({id, r.submit.attempt}).second);
      r.phase = Phase::running;
      r.worker = worker;
    }
    event([&] { desk_.tell(now_, Dispatch{id, attempt, worker, Micros(1)}); });
    REQUIRE(desk_.said<Run>().size() == (runs_now ? 1U : 0U));
    CHECK(desk_.said<Withdrawn>().size() == (runs_now ? 0U : 1U));
    runs += runs_now;
  }

  void end_one() {
    if (const RequestId id = any(Phase::running); id != RequestId{0}) end(id);
  }

  void end(RequestId id) {
    const Believed r = requests_[id];
    requests_.erase(id);
    event([&] {
      desk_.tell(now_,
                 RunEnded{id, r.submit.attempt, r.worker, kModel, FinishReason::stop, Tokens(pick(0, 400))});
    });
  }

  void cancel_one() {
    const RequestId id = any(Phase(pick(0, 2)));
    if (id == RequestId{0}) return;
    Believed& r = requests_[id];
    const bool was_running = r.phase == Phase::running;
    const std::size_t orders = was_running && !r.cancelled ? 1 : 0;
    if (was_running)
      r.cancelled = true;
    else
      requests_.erase(id);
    event([&] { desk_.tell(now_, Cancel{id}); });
    CHECK(desk_.said<Cancel>().size() == orders);
  }

  void verdict() {
    const RequestId id = any(Phase::waiting);
    if (id == RequestId{0}) return;
    const Believed r = requests_[id];
    if (r.due_at >= 0) late(id);
    event([&] { desk_.tell(now_, CannotBeOnTime{id, r.submit.attempt, Millis(500)}); });
  }

  void late(RequestId id) {
    Believed& r = requests_[id];
    r.due_at = -1;
    r.lowered = true;
    if (!r.submit.requeue_when_late) requests_.erase(id);
    ++lowerings;
  }

  void come_or_go(const ActorName& actor) {
    if (present_.insert(actor).second)
      return event([&] { desk_.tell(now_, ActorFound{actor, Incarnation(2)}); });
    present_.erase(actor);
    if (actor == kScheduler) backlog_.clear();  // Its next incarnation knows nothing.
    std::size_t interrupted = 0;
    for (auto it = requests_.begin(); it != requests_.end();) {
      Believed& r = it->second;
      const bool had_worker = r.phase == Phase::running && r.worker == actor;
      const bool had_gateway = r.submit.tokens_to == actor;
      const bool gone = (had_worker && r.cancelled) || (had_gateway && r.phase != Phase::running);
      if (had_gateway) r.cancelled = true;
      if (had_worker && !r.cancelled) {
        r.phase = Phase::interrupted;
        r.forgotten_at = now_ + kInterruptedKept;
        ++interrupted;
      }
      it = gone ? requests_.erase(it) : std::next(it);
    }
    event([&] { desk_.tell(now_, ActorLost{actor, Incarnation(1), "killed"}); });
    CHECK(desk_.said<Interrupted>().size() == interrupted);
    interruptions += std::int64_t(interrupted);
  }

  /// Messages about nothing, or about what is over: no request may change.
  void bogus() {
    const auto id = RequestId{std::uint64_t(pick(1, std::int64_t(last_) + 9))};
    const auto found = requests_.find(id);
    const Attempt attempt = found == requests_.end() ? 1 : found->second.submit.attempt + 5;
    event([&] { desk_.tell(now_, RunEnded{id, attempt, kWorker, kModel, FinishReason::stop, Tokens(1)}); });
    CHECK(desk_.out.letters.empty());
    event([&] { desk_.tell(now_, CannotBeOnTime{id, attempt, Millis(1)}); });
    CHECK(desk_.out.letters.empty());
    if (found == requests_.end()) event([&] { desk_.tell(now_, dispatch(std::uint64_t(id))); });
  }

  // --- Time ---

  void advance(std::int64_t millis) {
    const std::int64_t until = now_ + millis;
    while (alarm_ >= 0 && alarm_ <= until) {
      now_ = std::max(now_, alarm_);
      alarm_ = -1;
      for (const auto& [id, r] : std::map(requests_)) pass_time(id, r);
      event([&] { desk_.wake(now_, Timer(1)); });
    }
    now_ = until;
    for (const auto& [id, r] : requests_) {  // The queue asked to be woken for each of these.
      REQUIRE((r.phase != Phase::waiting || r.expires_at < 0 || r.expires_at > now_));
      REQUIRE((r.phase != Phase::waiting || r.due_at < 0 || r.due_at > now_));
      REQUIRE((r.phase != Phase::interrupted || r.forgotten_at > now_));
    }
  }

  void pass_time(RequestId id, const Believed& r) {
    if (r.phase == Phase::interrupted && r.forgotten_at <= now_) {
      requests_.erase(id);
    } else if (r.phase == Phase::waiting && r.expires_at >= 0 && r.expires_at <= now_) {
      requests_.erase(id);
      ++expiries;
    } else if (r.phase == Phase::waiting && r.due_at >= 0 && r.due_at <= now_) {
      late(id);
    }
  }

  // --- What must hold after every event ---

  /// Requests and tokens of what waits; of one tenant, or of all for "".
  std::pair<std::int64_t, std::int64_t> waiting(const std::string& tenant) const {
    std::pair<std::int64_t, std::int64_t> sum;
    for (const auto& [id, r] : requests_)
      if (r.phase == Phase::waiting && (tenant.empty() || r.submit.tenant.text() == tenant))
        sum = {sum.first + 1, sum.second + r.cost};
    return sum;
  }

  template <class Action>
  void event(Action action) {
    action();
    for (const Outbox::Alarm& alarm : desk_.out.alarms)
      if (alarm.timer == Timer(1)) alarm_ = std::max(now_, alarm.at.time_since_epoch() / Millis(1));
    for (const Outbox::Letter& letter : desk_.out.letters) follow(letter);
    const Outbox kept = desk_.out;
    desk_.wake(now_, Timer(2));  // Also announces what was held back.
    for (const Outbox::Letter& letter : desk_.out.letters) follow(letter);
    check_counts();
    desk_.out = kept;
  }

  void check_counts() {
    std::set<std::pair<RequestId, Attempt>> waiting_now;
    std::int64_t running = 0;
    for (const auto& [id, r] : requests_) {
      if (r.phase == Phase::waiting) waiting_now.insert({id, r.submit.attempt});
      running += r.phase == Phase::running;
    }
    if (present_.contains(kScheduler)) REQUIRE(backlog_ == waiting_now);
    if (!present_.contains(kGateway)) return;
    const auto status = desk_.only<QueueStatus>(kGateway);
    REQUIRE(status.waiting == waiting("").first);
    REQUIRE(status.waiting_tokens == Tokens(waiting("").second));
    REQUIRE(status.running == running);
  }

  /// The scheduler's view, kept as a scheduler would keep it: this is what finds a lost request.
  void follow(const Outbox::Letter& letter) {
    const auto forget = [&](RequestId id) {
      std::erase_if(backlog_, [&](const auto& waits) { return waits.first == id; });
    };
    if (!present_.contains(letter.to)) return;  // Dropped on the way.
    if (const auto* enqueued = std::get_if<Enqueued>(&letter.message)) {
      forget(enqueued->request);
      backlog_.insert({enqueued->request, enqueued->attempt});
    } else if (const auto* withdrawn = std::get_if<Withdrawn>(&letter.message)) {
      forget(withdrawn->request);
    } else if (const auto* run = std::get_if<Run>(&letter.message)) {
      forget(run->request);
    }
  }

  const ActorName kOther{"gateway/2"};
  const std::vector<ActorName> actors_{kGateway, kOther, kScheduler, kWorker, kOtherWorker};
  std::mt19937_64 random_;
  Desk desk_{options()};
  std::map<RequestId, Believed> requests_;
  std::set<ActorName> present_;
  std::set<std::pair<RequestId, Attempt>> backlog_;
  std::set<std::pair<RequestId, Attempt>> executed_;
  std::uint64_t last_ = 0;
  std::int64_t now_ = 0;
  std::int64_t alarm_ = -1;
};

}  // namespace

TEST_CASE("over 100,000 random events the queue keeps its promises (QUEUE_SEED replays a run)") {
  const char* given = std::getenv("QUEUE_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("replay with QUEUE_SEED=", seed, " unit_queue");
  World world(seed);
  for (int i = 0; i < 100'000; ++i) world.step();
  // The walk has been everywhere, or it has shown nothing.
  CHECK(world.runs > 1'000);
  CHECK(world.refusals > 1'000);
  CHECK(world.interruptions > 100);
  CHECK(world.expiries > 100);
  CHECK(world.lowerings > 100);
  world.drain();
  CHECK(world.status().waiting == 0);
  CHECK(world.status().waiting_tokens == Tokens(0));
  CHECK(world.status().running == 0);
  CHECK(world.fill() == kRequestsMax);
}
