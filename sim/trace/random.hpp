// Draws that are the same for a seed whatever the standard library: its engines are specified, its distributions not.
#pragma once

#include <cstdint>
#include <random>

namespace sangam::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// In [0, 1), 53 bits.
  double uniform() { return double(engine_() >> 11) * 0x1.0p-53; }
  double uniform(double from, double to) { return from + (to - from) * uniform(); }
  /// Mean 1.
  double exponential();
  /// Mean 0, standard deviation 1 (Marsaglia's polar method).
  double normal();
  /// Knuth's product of uniforms: for small means only, its time grows with the mean.
  int poisson(double mean);

 private:
  std::mt19937_64 engine_;
  double spare_ = 0.0;  ///< The second normal of a pair.
  bool has_spare_ = false;
};

}  // namespace sangam::sim
