// The distributions: see the header.
#include "sim/trace/random.hpp"

#include <cmath>

namespace sangam::sim {

double Random::exponential() {
  return -std::log1p(-uniform());
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double x, y, square;
  do {
    x = uniform(-1.0, 1.0);
    y = uniform(-1.0, 1.0);
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double stretch = std::sqrt(-2.0 * std::log(square) / square);
  spare_ = y * stretch;
  has_spare_ = true;
  return x * stretch;
}

int Random::poisson(double mean) {
  const double floor = std::exp(-mean);
  int count = 0;
  for (double product = uniform(); product > floor; product *= uniform()) ++count;
  return count;
}

}  // namespace sangam::sim
