// What a node and its lanes share: options, counts, the bell, and a log that a flood of bad frames cannot
// fill.
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <string>

#include "messages/mesh/mesh.hpp"
#include "messages/mesh/wake.hpp"

namespace sangam::mesh {

using Count = std::atomic<std::uint64_t>;

/// The atomic side of MeshCounters.
struct Tally {
  Count letters_lost{0}, letters_refused{0};
  Count frames_in{0}, bytes_in{0}, frames_out{0}, bytes_out{0};
  std::array<Count, wire::kFaults> refused{};
  Count strangers{0}, peers_found{0}, peers_lost{0}, peers_now{0};
  Count held_frames{0}, held_bytes{0}, unconsumed_bytes{0};
};

struct NodeParts {
  MeshOptions options;
  LogSink log;
  std::shared_ptr<Wake> wake = std::make_shared<Wake>();
  std::shared_ptr<Tally> tally = std::make_shared<Tally>();

  void say(LogLevel level, std::string_view event, Outbox::Fields fields) const {
    if (log) log(LogLine{level, std::string(event), {fields.begin(), fields.end()}});
  }
  /// For what strangers can cause at will: says it at the 1st, 2nd, 4th, 8th... time. `times` is the new
  /// count.
  void say_rarely(std::uint64_t times, std::string_view event, Outbox::Fields fields) const {
    if (std::has_single_bit(times)) say(LogLevel::warning, event, fields);
  }
  /// Counts those whom a door keeper has turned away.
  void say_refused(const std::vector<std::string>& addresses) const {
    for (const std::string& address : addresses) {
      const std::uint64_t times = ++tally->strangers;
      say_rarely(times, "mesh.key_refused",
                 {{"address", address}, {"why", "its key is not in the registry"}, {"times", std::to_string(times)}});
    }
  }
};

}  // namespace sangam::mesh
