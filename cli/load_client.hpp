// An HTTP client under open load: each request goes out when it is due, whatever has become of those before it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/http_client.hpp"

namespace sangam {

struct LoadRequest {
  std::string target;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct LoadProgress {
  std::size_t sent = 0;
  std::size_t ended = 0;
  Micros since_start{0};
  Micros behind_most{0};  ///< By how much a request was sent after it was due: this machine's fault, not the mesh's.
};

/// Says what is to be sent and hears of it. All calls come from within `run_load`, instants are since its start, and
/// calls are numbered in the order in which they are due.
class LoadSource {
 public:
  virtual ~LoadSource() = default;
  [[nodiscard]] virtual std::size_t count() const = 0;
  [[nodiscard]] virtual Micros due(std::size_t call) const = 0;
  [[nodiscard]] virtual LoadRequest request(std::size_t call) = 0;
  virtual void on_status(std::size_t call, int status) = 0;
  virtual void on_body(std::size_t call, std::string_view piece, Micros now) = 0;
  /// Exactly once for each call whose request was made. `failure`: `unavailable` for connections that cannot be made
  /// or break, `expired` after the timeout, `cancelled` after a stop.
  virtual void on_end(std::size_t call, const std::optional<Error>& failure, Micros now) = 0;
  /// Five times a second; false: nothing more is sent, and what is open is broken off.
  [[nodiscard]] virtual bool on_tick(const LoadProgress& progress) = 0;
};

/// POSTs all of `source` to `base` and waits for the last end; a call gets `timeout` from when it was due. Connections
/// are kept and used again, new ones are made whenever none is free. One thread.
[[nodiscard]] Result<LoadProgress> run_load(const HttpBase& base, LoadSource& source, Millis timeout);

}  // namespace sangam
