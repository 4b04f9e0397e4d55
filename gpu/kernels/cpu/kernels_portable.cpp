// The kernels for any CPU.
#include "gpu/kernels/cpu/kernels.hpp"
#include "gpu/kernels/cpu/lanes_portable.hpp"
// The templates need the lanes above.
#include "gpu/kernels/cpu/attention_tiles.hpp"
#include "gpu/kernels/cpu/codes_portable.hpp"
#include "gpu/kernels/cpu/kernel_list.hpp"

namespace sangam::cpu {

const Kernels& portable_kernels() {
  static constexpr Kernels kKernels = list_kernels<Portable>("portable");
  return kKernels;
}

}  // namespace sangam::cpu
