// The CAF shell: letters reach a core, its answers leave, timers run, and a crash is announced and mended.
#include "actors/host/host.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>

using namespace sangam;

namespace {

/// A post office of one process that writes down all that passes.
class Ledger final : public PostOffice {
 public:
  void attach(const ActorName& actor, Incarnation incarnation, Mailbox mailbox) override {
    const std::lock_guard hold(mutex_);
    attached.push_back({actor, incarnation});
    mailboxes_[actor] = std::move(mailbox);
    changed_.notify_all();
  }
  void detach(const ActorName& actor, const std::string& why) override {
    const std::lock_guard hold(mutex_);
    lost.push_back({actor, {}, why});
    mailboxes_.erase(actor);
    changed_.notify_all();
  }
  void send(Envelope envelope) override {
    const std::lock_guard hold(mutex_);
    sent.push_back(std::move(envelope));
    changed_.notify_all();
  }
  std::vector<ActorFound> present() const override { return attached; }

  void deliver_to(const ActorName& actor, Message message, std::uint64_t id = 0) {
    auto letter = std::make_shared<Envelope>();
    letter->to = actor;
    letter->id = id;
    letter->message = std::move(message);
    const std::lock_guard hold(mutex_);
    mailboxes_.at(actor)(letter);
  }

  /// Waits until the condition holds; a test that waits longer has failed.
  template <class Condition>
  void await(Condition condition) {
    std::unique_lock hold(mutex_);
    REQUIRE(changed_.wait_for(hold, std::chrono::seconds(20), condition));
  }

  std::vector<Envelope> sent;
  std::vector<ActorFound> attached;
  std::vector<ActorLost> lost;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ActorName, Mailbox> mailboxes_;
};

const ActorName kEcho("echo");
const ActorName kSink("sink");

/// Answers a Cancel with an Accepted of the same request; request 13 makes it crash; runs a timer and steps.
class EchoCore {
 public:
  void start(Instant, Outbox& out) { out.send(kSink, Accepted{RequestId{1}, 0}); }
  void on(const Cancel& cancel, Instant, Outbox& out) {
    if (cancel.request == RequestId{13}) throw std::runtime_error("thirteen");
    out.send(kSink, Accepted{cancel.request, 1});
  }
  void on(const Withdrawn&, Instant now, Outbox& out) {
    out.set_timer(Timer{7}, now + Millis(1));
    out.set_timer(Timer{7}, now + Millis(2));  // Moves the first: one wake in all.
    out.set_timer(Timer{8}, now + Millis(40));
  }
  void on(const Accepted&, Instant, Outbox&) { steps_left_ = 3; }
  void wake(Timer timer, Instant, Outbox& out) {
    out.send(kSink, Accepted{RequestId{std::uint64_t(timer)}, 2});
  }
  bool busy() const { return steps_left_ > 0; }
  void step(Instant, Outbox& out) { out.send(kSink, Accepted{RequestId{std::uint64_t(--steps_left_)}, 3}); }

 private:
  int steps_left_ = 0;
};

Role echo_role(bool own_thread = false) {
  return {kEcho, [](Incarnation) -> Result<std::unique_ptr<Hosted>> { return {std::make_unique<HostedCore<EchoCore>>()}; },
          own_thread};
}

std::vector<std::uint64_t> requests_of(const Ledger& ledger, Attempt attempt) {
  std::vector<std::uint64_t> requests;
  for (const auto& envelope : ledger.sent) {
    const auto& accepted = std::get<Accepted>(envelope.message);
    if (accepted.attempt == attempt) requests.push_back(std::uint64_t(accepted.request));
  }
  return requests;
}

}  // namespace

TEST_CASE("a hosted core starts, and answers a letter with the letter's id as correlation") {
  Ledger ledger;
  Host host({}, ledger);
  host.spawn(echo_role());
  ledger.await([&] { return ledger.sent.size() == 1 && ledger.attached.size() == 1; });
  ledger.deliver_to(kEcho, Cancel{RequestId{5}}, 77);
  ledger.await([&] { return ledger.sent.size() == 2; });
  CHECK(requests_of(ledger, 0) == std::vector<std::uint64_t>{1});
  CHECK(requests_of(ledger, 1) == std::vector<std::uint64_t>{5});
  CHECK(ledger.sent[1].from == kEcho);
  CHECK(ledger.sent[1].to == kSink);
  CHECK(ledger.sent[1].correlation == 77);
}

TEST_CASE("a timer that is set again before it ran runs once") {
  Ledger ledger;
  Host host({}, ledger);
  host.spawn(echo_role());
  ledger.await([&] { return ledger.attached.size() == 1; });
  ledger.deliver_to(kEcho, Withdrawn{});
  ledger.await([&] { return !requests_of(ledger, 2).empty() && requests_of(ledger, 2).back() == 8; });
  CHECK(requests_of(ledger, 2) == std::vector<std::uint64_t>{7, 8});
}

TEST_CASE("a busy core is stepped until it is idle, also on a thread of its own") {
  for (const bool own_thread : {false, true}) {
    Ledger ledger;
    Host host({}, ledger);
    host.spawn(echo_role(own_thread));
    ledger.await([&] { return ledger.attached.size() == 1; });
    ledger.deliver_to(kEcho, Accepted{});
    ledger.await([&] { return requests_of(ledger, 3).size() == 3; });
    CHECK(requests_of(ledger, 3) == std::vector<std::uint64_t>{2, 1, 0});
  }
}

TEST_CASE("a core that throws is announced as lost and comes back under a higher incarnation") {
  Ledger ledger;
  HostOptions options;
  options.incarnation = Incarnation{9};
  options.restart_delay_first = Millis(1);
  Host host(options, ledger);
  host.spawn(echo_role());
  ledger.await([&] { return ledger.attached.size() == 1; });
  ledger.deliver_to(kEcho, Cancel{RequestId{13}});
  ledger.await([&] { return ledger.attached.size() == 2; });
  REQUIRE(ledger.lost.size() == 1);
  CHECK(ledger.attached[0].incarnation == Incarnation{9 << 16});
  CHECK(ledger.attached[1].incarnation == Incarnation{(9 << 16) + 1});
  ledger.deliver_to(kEcho, Cancel{RequestId{6}});
  ledger.await([&] { return requests_of(ledger, 1) == std::vector<std::uint64_t>{6}; });
}

TEST_CASE("a core that cannot be made is tried again until it can") {
  Ledger ledger;
  HostOptions options;
  options.restart_delay_first = Millis(1);
  int tries = 0;
  Host host(options, ledger);
  host.spawn({kEcho, [&tries](Incarnation) -> Result<std::unique_ptr<Hosted>> {
                if (++tries < 3) return make_error(ErrorCode::unavailable, "not yet");
                return {std::make_unique<HostedCore<EchoCore>>()};
              }});
  ledger.await([&] { return ledger.attached.size() == 1; });
  CHECK(tries == 3);
  CHECK(ledger.attached[0].incarnation == Incarnation{(1 << 16) + 2});
}
