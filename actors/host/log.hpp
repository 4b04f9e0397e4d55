// Writes the decisions that cores report as one line of text each.
#pragma once

#include <string>

#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// "debug", "info", "warning", "error" or "off"; from then on, less important lines are dropped.
Result<void> set_log_level(const std::string& level);

/// `scheduler.request_refused model=med why=late`: event, then fields; values with spaces are quoted.
void write_log(const ActorName& actor, const LogLine& line);

}  // namespace sangam
