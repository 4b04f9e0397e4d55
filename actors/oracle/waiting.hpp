// Queueing formulas: who waits how long in front of several servers, and what of it is in time.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace sangam {

/// Requests that come at random (Poisson) to servers that are alike.
struct ServerLoad {
  double per_second = 0.0;   ///< Arrivals.
  double service = 0.0;      ///< Mean seconds of one server for one request.
  double service_scv = 1.0;  ///< Variance of it over its mean squared.
};

/// Which share of requests finds a server within `patience` seconds, where one that would not is turned away.
/// The virtual wait has, up to the limit, the density of the M/G/1 queue with the servers' joint speed (Takacs; for
/// several servers as Tijms approximates M/G/m), above Erlang's states of those who find a server free; what is
/// turned away follows from the conservation of work. Service times enter by mean and variance as if Gamma
/// distributed. Exact for exponential times (Barrer, 1957) and, but for that, on one server; at patience 0 it is
/// Erlang's loss formula; without limit it is 1 below saturation and servers / load above it.
class ImpatientQueue {
 public:
  ImpatientQueue(const ServerLoad& load, int servers);

  [[nodiscard]] double share_served(double patience) const;

 private:
  using Complex = std::complex<double>;

  double idle_ = 1.0;  // Probability of a free server, relative to that of all but one being busy.
  double rho_ = 0.0;   // Load of a server.
  double pace_ = 0.0;  // Services a second of all servers together.
  Complex root_[2], part_[2];  // The wait's density over services is the sum of part exp(root x), also relative.
  double growth_ = 0.0;  // Of that density, above saturation.
};

/// Requests that come in bursts: as if `peakedness` of them were one and asked for as many servers (Hayward's
/// approximation; Fredericks, 1980). Between whole numbers of such groups of servers shares are interpolated.
class BurstyQueue {
 public:
  BurstyQueue(ServerLoad load, double peakedness, int servers);

  [[nodiscard]] double share_served(double patience) const;

 private:
  double part_;  // How far the groups are from the whole number below to the one above.
  ImpatientQueue below_;
  ImpatientQueue above_;
};

/// The nearest non-decreasing sequence in least squares (pool adjacent violators; Ayer et al., 1955).
[[nodiscard]] std::vector<double> isotonic(std::span<const double> values, std::span<const double> weights);

[[nodiscard]] double logit(double share);
[[nodiscard]] double logistic(double x);
/// Distribution function of the standard normal.
[[nodiscard]] double normal_cdf(double x);

}  // namespace sangam
