// Signals as values that a main thread waits for, instead of handlers.
#pragma once

#include <csignal>
#include <optional>

#include "messages/vocabulary/time.hpp"

namespace sangam {

/// Blocks SIGINT, SIGTERM and SIGCHLD for this thread and all that it starts. Call it first in main.
void block_signals();
/// Gives a child that is about to exec the default signals back.
void unblock_signals();
/// The next of these signals; nothing when `timeout` has passed.
[[nodiscard]] std::optional<int> wait_for_signal(Millis timeout);

}  // namespace sangam
