// The prefills that one worker has been given and has not finished, and when it will be free (Janus's EPDT).
#pragma once

#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// Runs in the order of dispatch as far as the scheduler knows. Its length is bounded by the look-ahead.
class PrefillLine {
 public:
  /// The estimated prefill done time of all that is in the line; never in the past. What is overdue is
  /// taken to end just now, and pushes back what stands behind it.
  [[nodiscard]] Instant free_at(Instant now) const;
  [[nodiscard]] std::size_t size() const { return line_.size(); }

  void add(RequestId request, Micros estimate, Instant now);
  /// Shifts everything behind by how much sooner or later than expected this one ended.
  void finish(RequestId request, Instant now);
  /// It will not be run, or not to its end: everything behind comes forward, but not before now.
  void drop(RequestId request, Instant now);

 private:
  struct Entry {
    RequestId request{};
    Micros estimate{0};
    Instant expected{};  // End.
  };

  /// Removes `request` and shifts what is behind it by `shift(entry)`.
  template <class Shift>
  void remove(RequestId request, Instant now, Shift shift);

  std::vector<Entry> line_;  // Front: in work now.
};

}  // namespace sangam
