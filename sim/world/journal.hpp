// The measuring instrument of the simulated world: what became of each request, token by token. No actor reads it
// but the workers, who must know how long an answer is that nobody generates.
#pragma once

#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam::sim {

/// Times are microseconds since the world's beginning.
struct JournalEntry {
  std::uint32_t app = 0;
  Tokens input{0};
  Tokens output{0};  ///< That it would have.
  double arrival = 0.0;
  double ttft_slo = 0.0;
  double tpot_slo = 0.0;
  double first = -1.0;  ///< When the first token came; negative: never.
  double last = -1.0;
  std::int64_t produced = 0;
  std::int64_t late = 0;  ///< Token i is due at arrival + ttft_slo + (i - 1) tpot_slo.
  ErrorCode code = ErrorCode::none;
  bool ended = false;

  void produce(double at) {
    if (produced == 0) first = at;
    if (at > arrival + ttft_slo + double(produced) * tpot_slo) ++late;
    ++produced;
    last = at;
  }
};

/// By RequestId, which count from 1.
class Journal {
 public:
  explicit Journal(std::size_t requests) : entries_(requests) {}

  [[nodiscard]] JournalEntry& of(RequestId request) { return entries_.at(std::size_t(request) - 1); }
  [[nodiscard]] const std::vector<JournalEntry>& entries() const { return entries_; }

 private:
  std::vector<JournalEntry> entries_;
};

}  // namespace sangam::sim
