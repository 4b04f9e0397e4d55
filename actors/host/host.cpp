// One CAF actor a core, one to supervise them, and the actor system that runs them.
#include "actors/host/host.hpp"

#include <caf/all.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <thread>

#include "actors/host/log.hpp"

namespace sangam {

using StartCore = caf::atom_constant<caf::atom("start")>;
using WakeCore = caf::atom_constant<caf::atom("wake")>;
using StepCore = caf::atom_constant<caf::atom("step")>;
using Respawn = caf::atom_constant<caf::atom("respawn")>;

namespace {

/// Passed to a shell by pointer, since CAF copies what it sends.
using HostedPtr = std::shared_ptr<Hosted>;

}  // namespace
}  // namespace sangam

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(sangam::EnvelopePtr)

namespace sangam {
namespace {

/// The mailbox, the timers and the outgoing post of one core.
class Shell {
 public:
  Shell(caf::event_based_actor* self, ActorName name, HostedPtr core, PostOffice& post)
      : self_(self), name_(std::move(name)), core_(std::move(core)), post_(post) {}

  caf::behavior behavior() {
    return {[this](StartCore) {
              core_->start(now(), out_);
              flush();
            },
            [this](const EnvelopePtr& letter) { receive(*letter); },
            [this](WakeCore, std::uint64_t timer, std::int64_t at) { wake(Timer{timer}, at); },
            [this](StepCore) {
              stepping_ = false;
              core_->step(now(), out_);
              flush();
            }};
  }

 private:
  /// From the actor system's clock, so that CAF's test coordinator can drive it.
  Instant now() const {
    return Instant(std::chrono::duration_cast<Micros>(self_->clock().now().time_since_epoch()));
  }

  void receive(const Envelope& letter) {
    cause_ = &letter;
    if (!core_->on(letter.message, now(), out_)) {
      out_.log(LogLevel::warning, "host.message_not_understood",
               {{"from", letter.from.text()}, {"kind", std::to_string(letter.message.index())}});
    }
    flush();
    cause_ = nullptr;
  }

  void wake(Timer timer, std::int64_t at) {
    const auto set = alarms_.find(timer);
    const bool current = set != alarms_.end() && set->second.time_since_epoch().count() == at;
    if (!current) return;  // It was moved after this message had been sent.
    alarms_.erase(set);
    core_->wake(timer, now(), out_);
    flush();
  }

  void flush() {
    for (auto& letter : out_.letters) {
      Envelope envelope;
      envelope.from = name_;
      envelope.to = std::move(letter.to);
      envelope.message = std::move(letter.message);
      if (cause_ != nullptr) {
        envelope.correlation = cause_->id;
        envelope.trace = cause_->trace;
      }
      post_.send(std::move(envelope));
    }
    for (const auto& alarm : out_.alarms) set_alarm(alarm);
    for (const auto& line : out_.logs) write_log(name_, line);
    out_.clear();
    if (core_->busy() && !stepping_) {
      stepping_ = true;
      self_->send(self_, StepCore::value);
    }
  }

  void set_alarm(const Outbox::Alarm& alarm) {
    alarms_[alarm.timer] = alarm.at;
    const auto delay = std::max(alarm.at - now(), Micros::zero());
    self_->delayed_send(self_, delay, WakeCore::value, std::uint64_t(alarm.timer),
                        std::int64_t(alarm.at.time_since_epoch().count()));
  }

  caf::event_based_actor* self_;
  ActorName name_;
  HostedPtr core_;
  PostOffice& post_;
  Outbox out_;
  std::map<Timer, Instant> alarms_;
  const Envelope* cause_ = nullptr;
  bool stepping_ = false;
};

struct ShellState {
  std::optional<Shell> shell;
  static inline const char* name = "sangam.shell";
};

/// A role and what has become of it.
struct Cast {
  Role role;
  caf::actor actor;
  std::uint64_t starts = 0;
  std::uint64_t crashes_in_a_row = 0;
  caf::actor_clock::time_point started{};
};

/// What the supervisor is told of a core that threw.
caf::error crash_report(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& problem) {
    return caf::make_error(caf::sec::runtime_error, problem.what());
  } catch (...) {
    return caf::make_error(caf::sec::runtime_error, "an exception that is no std::exception");
  }
}

/// Starts every role, hears when one dies, and starts it again after a delay.
class Supervisor {
 public:
  Supervisor(caf::event_based_actor* self, const HostOptions& options, PostOffice& post)
      : self_(self), options_(options), post_(post) {}

  caf::behavior behavior() {
    self_->set_down_handler([this](caf::down_msg& down) { mourn(down); });
    self_->set_exit_handler([this](caf::exit_msg& exit) { close(exit); });
    return {[this](Respawn, const std::shared_ptr<Cast>& cast) { start(cast); }};
  }

 private:
  void start(const std::shared_ptr<Cast>& cast) {
    // Sixteen bits of restarts below the process's own number: rises over both.
    const Incarnation incarnation{(std::uint64_t(options_.incarnation) << 16) + cast->starts++};
    cast->started = self_->clock().now();
    auto core = cast->role.make(incarnation);
    if (!core) {
      crashed(cast, core.error().context);
      return;
    }
    cast->actor = spawn_shell(*cast, HostedPtr(std::move(*core)));
    self_->monitor(cast->actor);
    caf::anon_send(cast->actor, StartCore::value);
    casts_[cast->actor.address()] = cast;
    const auto actor = cast->actor;
    post_.attach(cast->role.name, incarnation, [actor](EnvelopePtr letter) { caf::anon_send(actor, letter); });
  }

  caf::actor spawn_shell(const Cast& cast, HostedPtr core) {
    auto body = [name = cast.role.name, core, &post = post_](caf::stateful_actor<ShellState>* self) {
      self->state.shell.emplace(self, name, core, post);
      self->set_exception_handler([](std::exception_ptr& thrown) { return crash_report(thrown); });
      return self->state.shell->behavior();
    };
    return cast.role.own_thread ? self_->spawn<caf::detached>(body) : self_->spawn(body);
  }

  void mourn(const caf::down_msg& down) {
    const auto found = casts_.find(down.source);
    if (found == casts_.end()) return;
    const auto cast = found->second;
    casts_.erase(found);
    const std::string why = self_->system().render(down.reason);
    post_.detach(cast->role.name, why);
    crashed(cast, why);
  }

  void crashed(const std::shared_ptr<Cast>& cast, const std::string& why) {
    const bool was_healthy = self_->clock().now() - cast->started >= options_.healthy_after;
    cast->crashes_in_a_row = was_healthy ? 1 : cast->crashes_in_a_row + 1;
    const auto doublings = std::min<std::uint64_t>(cast->crashes_in_a_row - 1, 16);
    const auto delay = std::min(options_.restart_delay_first * (1 << doublings), options_.restart_delay_max);
    LogLine line{LogLevel::error, "host.actor_crashed", {{"why", why}, {"restart_in_ms", std::to_string(delay.count())}}};
    write_log(cast->role.name, line);
    self_->delayed_send(self_, delay, Respawn::value, cast);
  }

  void close(const caf::exit_msg& exit) {
    for (const auto& [address, cast] : casts_) {
      post_.detach(cast->role.name, "stopped");
      caf::anon_send<caf::message_priority::high>(
          cast->actor, caf::exit_msg{self_->address(), caf::exit_reason::user_shutdown});
    }
    casts_.clear();
    self_->quit(exit.reason);
  }

  caf::event_based_actor* self_;
  HostOptions options_;
  PostOffice& post_;
  std::map<caf::actor_addr, std::shared_ptr<Cast>> casts_;
};

struct SupervisorState {
  std::optional<Supervisor> supervisor;
  static inline const char* name = "sangam.supervisor";
};

struct Configuration : caf::actor_system_config {
  explicit Configuration(std::size_t threads) {
    // Fair between neighbours: by default a busy actor keeps its thread until its mailbox is empty.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", threads);
    set("scheduler.max-throughput", std::size_t(50));
  }
};

}  // namespace
}  // namespace sangam

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::shared_ptr<sangam::Cast>)

namespace sangam {

struct Host::Stage {
  Stage(const HostOptions& options, PostOffice& post) : configuration(options.threads), system(configuration) {
    supervisor = system.spawn([options, &post](caf::stateful_actor<SupervisorState>* self) {
      self->state.supervisor.emplace(self, options, post);
      return self->state.supervisor->behavior();
    });
  }

  Configuration configuration;
  caf::actor_system system;
  caf::actor supervisor;
};

Host::Host(HostOptions options, PostOffice& post) : stage_(std::make_unique<Stage>(options, post)) {}

Host::~Host() {
  caf::anon_send<caf::message_priority::high>(
      stage_->supervisor, caf::exit_msg{stage_->supervisor.address(), caf::exit_reason::user_shutdown});
  stage_->supervisor = nullptr;
  // ~actor_system waits until every actor has ended.
}

void Host::spawn(Role role) {
  auto cast = std::make_shared<Cast>();
  cast->role = std::move(role);
  caf::anon_send(stage_->supervisor, Respawn::value, cast);
}

}  // namespace sangam
