// What this machine can do at most: the physical limits that an engine is measured against.
#pragma once

namespace sangam {

/// Bytes per second that all threads together read from huge pages that no cache holds. Best of many short passes.
[[nodiscard]] double read_bandwidth(int threads);

/// fp32 multiplications and additions per second of all threads together, from registers, in vectors of `lanes`: 4,
/// 8 or 16, and no more than this processor has. Best of many short passes.
[[nodiscard]] double multiply_add_peak(int threads, int lanes);

}  // namespace sangam
