// What a core answers with: messages to send, timers to set, decisions to log. The shell carries it out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "messages/vocabulary/message.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// A core's own name for one of its timers. Setting a timer again moves it; each runs once.
enum class Timer : std::uint64_t {};

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// One decision: a constant event name ("queue.refused") and its fields.
struct LogLine {
  LogLevel level = LogLevel::info;
  std::string event;
  std::vector<std::pair<std::string, std::string>> fields;
};

/// Filled by one call into a core, emptied by the shell after it.
class Outbox {
 public:
  struct Letter {
    ActorName to;
    Message message;
  };
  struct Alarm {
    Timer timer{};
    Instant at{};
  };
  using Fields = std::initializer_list<std::pair<std::string, std::string>>;

  void send(ActorName to, Message message) { letters.push_back({std::move(to), std::move(message)}); }
  void set_timer(Timer timer, Instant at) { alarms.push_back({timer, at}); }
  void log(LogLevel level, std::string_view event, Fields fields) {
    logs.push_back({level, std::string(event), {fields.begin(), fields.end()}});
  }
  void clear() {
    letters.clear();
    alarms.clear();
    logs.clear();
  }

  std::vector<Letter> letters;
  std::vector<Alarm> alarms;
  std::vector<LogLine> logs;
};

/// Gives `message` to the core's handler for its type. False where the core has none: the shell counts and
/// logs it. Presence (ActorFound, ActorLost) is told to everyone, so a core need not care.
template <class Core>
[[nodiscard]] bool deliver(Core& core, const Message& message, Instant now, Outbox& out) {
  return std::visit(
      [&]<class M>(const M& m) {
        if constexpr (requires { core.on(m, now, out); }) {
          core.on(m, now, out);
          return true;
        } else {
          return std::is_same_v<M, ActorFound> || std::is_same_v<M, ActorLost>;
        }
      },
      message);
}

}  // namespace sangam
