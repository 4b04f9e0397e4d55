// What this machine can do at most: the physical limits that an engine is measured against.
#pragma once

namespace sangam {

/// Bytes per second that all threads together read from memory that no cache holds. Best of several passes.
[[nodiscard]] double read_bandwidth(int threads);

/// fp32 multiplications and additions per second of all threads together, from registers. Best of several.
[[nodiscard]] double multiply_add_peak(int threads);

}  // namespace sangam
