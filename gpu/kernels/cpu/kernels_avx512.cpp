// The kernels for AVX-512.
#include "gpu/kernels/cpu/kernels.hpp"
#include "gpu/kernels/cpu/lanes_avx512.hpp"
// The templates need the lanes above.
#include "gpu/kernels/cpu/attention_tiles.hpp"
#include "gpu/kernels/cpu/codes_avx512.hpp"
#include "gpu/kernels/cpu/kernel_list.hpp"

namespace sangam::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels kKernels = list_kernels<Avx512>("avx512");
  return kKernels;
}

}  // namespace sangam::cpu
