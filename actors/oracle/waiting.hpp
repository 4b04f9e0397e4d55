// Queueing formulas: who waits how long in front of several servers, and what of it is in time.
#pragma once

#include <span>
#include <vector>

namespace sangam {

/// Requests that come at random (Poisson) to servers that are alike.
struct ServerLoad {
  double per_second = 0.0;   ///< Arrivals.
  double service = 0.0;      ///< Mean seconds of one server for one request.
  double service_scv = 1.0;  ///< Variance of it over its mean squared.
};

/// Share of requests that find a server within `patience` seconds, where one that would not is turned away.
/// The virtual wait has, up to the limit, the density of the M/G/1 queue with the servers' joint speed (Takacs; for
/// several servers as Tijms approximates M/G/m), above Erlang's states of those who find a server free; what is
/// turned away follows from the conservation of work. Service times enter by mean and variance as if Gamma
/// distributed. Exact for exponential times (Barrer, 1957) and, but for that, on one server; at patience 0 it is
/// Erlang's loss formula; without limit it is 1 below saturation and servers / load above it.
[[nodiscard]] double share_served(const ServerLoad& load, int servers, double patience);

/// The nearest non-decreasing sequence in least squares (pool adjacent violators; Ayer et al., 1955).
[[nodiscard]] std::vector<double> isotonic(std::span<const double> values, std::span<const double> weights);

[[nodiscard]] double logit(double share);
[[nodiscard]] double logistic(double x);
/// Distribution function of the standard normal.
[[nodiscard]] double normal_cdf(double x);

}  // namespace sangam
