// The CPU back end: one set of kernels, chosen for this processor, and the threads that share its work.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "gpu/kernels/ops.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Which instructions the kernels use. Bits are equal within one set, not across sets.
enum class Isa : std::uint8_t { best, portable, avx2, avx512 };

/// "best", "portable", "avx2" or "avx512", as in a configuration.
[[nodiscard]] Result<Isa> isa_named(std::string_view name);
/// Whether this processor and its operating system can run the set.
[[nodiscard]] bool supported(Isa isa);

struct CpuOptions {
  Isa isa = Isa::best;
  int threads = 0;  ///< 0: one for each hardware thread.
};

/// Refuses a set that this processor lacks.
[[nodiscard]] Result<std::unique_ptr<Ops>> make_cpu_ops(const CpuOptions& options);

}  // namespace sangam
