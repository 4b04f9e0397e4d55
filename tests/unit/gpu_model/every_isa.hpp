// Runs a check with the kernels of each instruction set that this processor has, and says which it had to
// skip.
#pragma once

#include <doctest/doctest.h>

#include <memory>

#include "gpu/kernels/cpu/cpu_ops.hpp"

namespace sangam::testing {

/// check(ops) for each set, with `threads` threads.
template <class Check>
void for_every_isa(int threads, const Check& check) {
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    auto ops = make_cpu_ops({isa, threads});
    if (!ops) {
      MESSAGE("skipped: ", ops.error().context);
      continue;
    }
    CAPTURE((*ops)->name());
    check(**ops);
  }
}

}  // namespace sangam::testing
