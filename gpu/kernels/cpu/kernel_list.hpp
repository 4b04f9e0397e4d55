// The table of one instruction set's kernels, from the templates.
#pragma once

#include "gpu/kernels/cpu/attention_tiles.hpp"
#include "gpu/kernels/cpu/expanded_rows.hpp"
#include "gpu/kernels/cpu/kernels.hpp"

namespace sangam::cpu {
namespace {

template <class S>
constexpr Kernels list_kernels(const char* name) {
  return Kernels{.name = name,
                 .pack = pack<S>,
                 .sum = sum_of<S>,
                 .project = project<S>,
                 .attend = attend<S>,
                 .attention_scratch = attention_scratch<S>,
                 .rms_norm = rms_norm<S>,
                 .rotate = rotate<S>,
                 .swiglu = swiglu<S>,
                 .to_half = to_half<S>,
                 .widen = widen<S>};
}

}  // namespace
}  // namespace sangam::cpu
