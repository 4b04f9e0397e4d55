// A supervisor of processes on fork, exec and waitpid. Children die with their parent, however it dies.
#include "cli/children.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>

#include "actors/host/log.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"

namespace sangam {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  ChildSpec spec;
  pid_t pid = 0;  ///< 0: not running.
  Clock::time_point started{};
  std::optional<Clock::time_point> restart_at;
  int deaths_in_a_row = 0;
};

void log(LogLevel level, const char* event, const Child& child, const std::string& detail) {
  write_log(ActorName("supervisor"),
            {level, event, {{"role", child.spec.role}, {"pid", std::to_string(child.pid)}, {"detail", detail}}});
}

[[noreturn]] void become(const ChildSpec& spec, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // The parent died before the line above took hold.
  unblock_signals();
  std::vector<char*> arguments = {const_cast<char*>("sangam")};
  for (const auto& argument : spec.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  _exit(1);
}

class Family {
 public:
  Family(const std::vector<ChildSpec>& specs, const ChildrenOptions& options) : options_(options) {
    for (const auto& spec : specs) children_.push_back({spec, 0, {}, Clock::now(), 0});
  }

  int run() {
    while (!exit_code_) {
      start_due();
      const auto signal = wait_for_signal(until_next_start());
      if (signal == SIGINT || signal == SIGTERM) exit_code_ = kExitOk;
      reap();
    }
    end_all();
    return *exit_code_;
  }

 private:
  void start_due() {
    for (auto& child : children_) {
      if (child.restart_at && *child.restart_at <= Clock::now()) start(child);
    }
  }

  void start(Child& child) {
    child.restart_at.reset();
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become(child.spec, parent);
    child.started = Clock::now();
    if (pid < 0) return died(child, std::string("cannot fork: error ") + std::to_string(errno));
    child.pid = pid;
    log(LogLevel::info, "supervisor.process_started", child, "");
  }

  Millis until_next_start() const {
    auto wait = Millis(60'000);
    for (const auto& child : children_) {
      if (!child.restart_at) continue;
      wait = std::min(wait, std::chrono::ceil<Millis>(*child.restart_at - Clock::now()));
    }
    return std::max(wait, Millis(0));
  }

  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = std::find_if(children_.begin(), children_.end(), [&](const auto& c) { return c.pid == pid; });
      if (child != children_.end()) ended(*child, status);
    }
  }

  void ended(Child& child, int status) {
    if (exit_code_) {
      child.pid = 0;
      return;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const bool told_wrong = code == kExitUsage || code == kExitAddress || code == kExitState;
    if (told_wrong) {
      log(LogLevel::error, "supervisor.process_refused", child, "exit code " + std::to_string(code));
      child.pid = 0;
      exit_code_ = code;
      return;
    }
    died(child, WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "exit code " + std::to_string(code));
  }

  void died(Child& child, const std::string& how) {
    const bool was_healthy = Clock::now() - child.started >= options_.healthy_after;
    child.deaths_in_a_row = was_healthy ? 1 : child.deaths_in_a_row + 1;
    const int doublings = std::min(child.deaths_in_a_row - 1, 16);
    const auto delay = std::min(options_.restart_delay_first * (1 << doublings), options_.restart_delay_max);
    log(LogLevel::error, "supervisor.process_died", child, how + ", restart in " + std::to_string(delay.count()) + " ms");
    child.pid = 0;
    child.restart_at = Clock::now() + delay;
  }


  /// The gateway first, so that it can end its calls while the others still serve them; then the rest.
  void end_all() {
    const auto deadline = Clock::now() + options_.stop_grace;
    if (!children_.empty()) end({children_.data(), 1}, deadline);
    end(children_, deadline);
  }

  void end(std::span<Child> some, Clock::time_point deadline) {
    const auto alive = [&] { return std::any_of(some.begin(), some.end(), [](const auto& c) { return c.pid != 0; }); };
    for (const auto& child : some) {
      if (child.pid != 0) kill(child.pid, SIGTERM);
    }
    while (alive() && Clock::now() < deadline) {
      const auto signal = wait_for_signal(std::chrono::ceil<Millis>(deadline - Clock::now()));
      reap();
      if (signal == SIGINT || signal == SIGTERM) break;  // Asked twice: at once.
    }
    for (const auto& child : some) {
      if (child.pid != 0) kill(child.pid, SIGKILL);
    }
    while (alive()) {
      (void)wait_for_signal(Millis(100));
      reap();
    }
  }

  ChildrenOptions options_;
  std::vector<Child> children_;
  std::optional<int> exit_code_;
};

}  // namespace

int run_children(const std::vector<ChildSpec>& specs, const ChildrenOptions& options) {
  return Family(specs, options).run();
}

}  // namespace sangam
