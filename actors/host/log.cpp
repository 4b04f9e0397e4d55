// One line a decision, through spdlog to standard error.
#include "actors/host/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <map>

namespace sangam {
namespace {

spdlog::logger& logger() {
  // Standard error: standard output belongs to what a command answers.
  static const auto instance = [] {
    auto made = spdlog::stderr_logger_mt("sangam");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: break;
  }
  return spdlog::level::err;
}

void append_value(std::string& text, const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \t\n\"=") == std::string::npos;
  if (plain) {
    text += value;
    return;
  }
  text += '"';
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  text += '"';
}

}  // namespace

Result<void> set_log_level(const std::string& level) {
  static const std::map<std::string, spdlog::level::level_enum> levels = {{"debug", spdlog::level::debug},
                                                                          {"info", spdlog::level::info},
                                                                          {"warning", spdlog::level::warn},
                                                                          {"error", spdlog::level::err},
                                                                          {"off", spdlog::level::off}};
  const auto found = levels.find(level);
  if (found == levels.end()) {
    return make_error(ErrorCode::invalid_input,
                      "log level '" + level + "' is unknown; use debug, info, warning, error or off");
  }
  logger().set_level(found->second);
  return {};
}

void write_log(const ActorName& actor, const LogLine& line) {
  const auto level = level_of(line.level);
  if (!logger().should_log(level)) return;
  std::string text = line.event;
  text += " actor=";
  append_value(text, actor.text());
  for (const auto& [key, value] : line.fields) {
    text += ' ' + key + '=';
    append_value(text, value);
  }
  logger().log(level, "{}", text);
}

}  // namespace sangam
