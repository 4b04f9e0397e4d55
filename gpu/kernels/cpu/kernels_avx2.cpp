// The kernels for AVX2 with FMA and F16C.
#include "gpu/kernels/cpu/kernels.hpp"
#include "gpu/kernels/cpu/lanes_avx2.hpp"
// The templates need the lanes above.
#include "gpu/kernels/cpu/attention_tiles.hpp"
#include "gpu/kernels/cpu/codes_avx2.hpp"
#include "gpu/kernels/cpu/kernel_list.hpp"

namespace sangam::cpu {

const Kernels& avx2_kernels() {
  static constexpr Kernels kKernels = list_kernels<Avx2>("avx2");
  return kKernels;
}

}  // namespace sangam::cpu
