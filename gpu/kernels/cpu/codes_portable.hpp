// The levels of four codes, one by one.
#pragma once

#include "gpu/kernels/cpu/expanded_rows.hpp"
#include "gpu/kernels/cpu/lanes_portable.hpp"

namespace sangam::cpu {
namespace {

template <RowCode code>
struct Codes<Portable, code> {
  const float* levels = sangam::levels(code).data();
  Portable::Vec factor{};
  void enter(Portable::Vec scale) { factor = scale; }

  /// `bits` bits of the code at `place`.
  static unsigned get(const std::byte* p, int place, int bits) {
    const int bit = place * bits;
    return (std::to_integer<unsigned>(p[bit / 8]) >> (bit % 8)) & ((1u << bits) - 1u);
  }
  static unsigned code_of(const std::byte* p, int column) {
    const int place = code == RowCode::b4 ? column : column % 2 * 16 + column / 2;
    if constexpr (code == RowCode::b3) return get(p, place, 2) | get(p + 8, place, 1) << 2;
    return get(p, place, bits_of(code));
  }
  [[nodiscard]] Portable::Vec at(const std::byte* p, int column) const {
    return factor * Portable::Vec{levels[code_of(p, column)], levels[code_of(p, column + 2)], levels[code_of(p, column + 4)],
                         levels[code_of(p, column + 6)]};
  }
  [[nodiscard]] Portable::Vec even(const std::byte* p, int part) const { return at(p, 8 * part); }
  [[nodiscard]] Portable::Vec odd(const std::byte* p, int part) const { return at(p, 8 * part + 1); }
};

}  // namespace
}  // namespace sangam::cpu
