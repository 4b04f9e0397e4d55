// The applications of W0, the generated day of a production service: 62 apps on 9 models.
#pragma once

#include <string>
#include <vector>

namespace sangam::sim {

/// How the load of an app goes through the day.
enum class DayCurve { office, evening, flat, night };

/// Lognormal, rounded and capped.
struct LengthSpread {
  double mean = 0.0;   ///< Tokens, after rounding and capping.
  double sigma = 0.0;  ///< Standard deviation of the logarithm.
};

struct App {
  std::string name;
  std::string model;
  int devices = 1;             ///< That one instance of the model spans (tensor parallel): 1, 4 or 16.
  double request_share = 0.0;  ///< Of all requests of the day; the apps' shares add up to 1.
  DayCurve curve = DayCurve::office;
  bool bursts = false;  ///< Several times a day its rate jumps 5.5 to 10 times.
  LengthSpread input{};
  LengthSpread output{};
};

/// In order of request share.
[[nodiscard]] const std::vector<App>& w0_apps();

inline constexpr double kFirstShareLeast = 0.25;
inline constexpr double kFirstShareMost = 0.5;

/// The same apps where the first asks such a share of all requests, between the two bounds. What is published holds as
/// before: the first seven ask 80 %, and lengths change against the shares so that each app makes as many tokens.
[[nodiscard]] std::vector<App> w0_apps_with(double first_share);

}  // namespace sangam::sim
