// What more workers would give: shares of tokens on time by the laws of queues, corrected on the logit scale by what
// has been learned of this model.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "actors/oracle/calibration.hpp"
#include "actors/oracle/gaussian_process.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/oracle/promises.hpp"

namespace sangam {

/// Of one window of requests: how many there were, and the sum of their shares of tokens on time.
struct Punctuality {
  double requests = 0.0;
  double on_time = 0.0;
};

/// Lower bounds by number of workers, from one; none falls.
struct AttainmentCurves {
  std::vector<double> prefill;
  std::vector<double> decode;
};

class Elasticity {
 public:
  /// The law's share for so many workers.
  using Law = std::function<Attainment(int workers)>;

  Elasticity(const OracleOptions& options, std::uint64_t seed);

  /// `inputs`: by number of workers; `now`: how many there are. The law is asked from one worker up until all is
  /// certain, what was learned at a few numbers only and taken to be smooth between.
  [[nodiscard]] AttainmentCurves foresee(const std::function<std::vector<double>(int workers)>& inputs, const Law& law,
                                         int now) const;
  /// Holds what was observed against the forecast, then learns it.
  void learn_prefill(const std::vector<double>& inputs, double lawful, const Punctuality& seen, Calibration& score);
  void learn_decode(const std::vector<double>& inputs, double lawful, const Punctuality& seen, Calibration& score);

  [[nodiscard]] std::array<GaussianProcess, 2>& processes() { return processes_; }

 private:
  [[nodiscard]] std::vector<double> bounds(const std::vector<double>& lawful, std::size_t process,
                                           const std::function<std::vector<double>(int workers)>& inputs, int now) const;
  void learn(std::size_t process, const std::vector<double>& inputs, double lawful, const Punctuality& seen,
             Calibration& score);

  const OracleOptions& options_;
  std::array<GaussianProcess, 2> processes_;  // Prefill, decode.
  std::array<AdaptiveInterval, 2> calibrated_;
};

}  // namespace sangam
