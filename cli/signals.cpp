// Blocking and waiting for the signals that end a process or tell of a child.
#include "cli/signals.hpp"

#include <pthread.h>

namespace sangam {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void block_signals() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void unblock_signals() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<int> wait_for_signal(Millis timeout) {
  const sigset_t set = watched_signals();
  timespec limit{};
  limit.tv_sec = timeout.count() / 1000;
  limit.tv_nsec = timeout.count() % 1000 * 1'000'000;
  const int signal = sigtimedwait(&set, nullptr, &limit);
  if (signal < 0) return std::nullopt;
  return signal;
}

}  // namespace sangam
