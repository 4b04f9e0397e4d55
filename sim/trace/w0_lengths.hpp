// Lengths of prompts and answers of one W0 application.
#pragma once

#include "messages/vocabulary/quantity.hpp"
#include "sim/trace/random.hpp"
#include "sim/trace/w0_apps.hpp"

namespace sangam::sim {

inline constexpr Tokens kW0InputMax{32'768};
inline constexpr Tokens kW0OutputMax{8'192};

/// A lognormal that is cut at 1 and at `most`, so placed that its mean after the cuts is `spread.mean`.
class Lengths {
 public:
  Lengths(LengthSpread spread, Tokens most);

  /// Where the standard normal stands at `quantile_normal`.
  [[nodiscard]] Tokens at(double quantile_normal) const;

 private:
  double sigma_;
  double most_;
  double mu_;  ///< Mean of the logarithm.
};

/// Longer prompts get slightly longer answers: rank correlation 0.10, by a Gaussian copula.
class LengthPair {
 public:
  explicit LengthPair(const App& app) : input_(app.input, kW0InputMax), output_(app.output, kW0OutputMax) {}

  struct Draw {
    Tokens input;
    Tokens output;
  };
  [[nodiscard]] Draw draw(Random& random) const;

 private:
  Lengths input_;
  Lengths output_;
};

}  // namespace sangam::sim
