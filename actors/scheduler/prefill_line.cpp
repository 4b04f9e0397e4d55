// EPDT: one expected end for each prefill in the line, corrected by what really happens.
#include "actors/scheduler/prefill_line.hpp"

#include <algorithm>

namespace sangam {

Instant PrefillLine::free_at(Instant now) const {
  if (line_.empty()) return now;
  const Micros overdue = std::max(now - line_.front().expected, Micros(0));
  return std::max(line_.back().expected + overdue, now);
}

void PrefillLine::add(RequestId request, Micros estimate, Instant now) {
  const Instant start = free_at(now);
  if (!line_.empty()) {
    // What is overdue is overdue by so much only: else its end would count this delay once more.
    const Micros overdue = std::max(now - line_.front().expected, Micros(0));
    for (Entry& entry : line_) entry.expected += overdue;
  }
  line_.push_back({request, estimate, start + estimate});
}

template <class Shift>
void PrefillLine::remove(RequestId request, Instant now, Shift shift) {
  auto entry = std::find_if(line_.begin(), line_.end(), [&](const Entry& e) { return e.request == request; });
  if (entry == line_.end()) return;
  Micros by = shift(*entry);
  const bool was_front = entry == line_.begin();
  entry = line_.erase(entry);
  // A new front starts now, not in the past.
  if (was_front && entry != line_.end()) by = std::max(by, now + entry->estimate - entry->expected);
  for (; entry != line_.end(); ++entry) entry->expected += by;
}

void PrefillLine::finish(RequestId request, Instant now) {
  remove(request, now, [now](const Entry& e) { return now - e.expected; });
}

void PrefillLine::drop(RequestId request, Instant now) {
  remove(request, now, [](const Entry& e) { return -e.estimate; });
}

}  // namespace sangam
