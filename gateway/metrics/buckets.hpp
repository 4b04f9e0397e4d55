// Histogram bounds that public dashboards of vLLM assume.
#pragma once

#include <vector>

namespace sangam::buckets {

[[nodiscard]] inline std::vector<double> ttft() {
  return {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
          1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
}
[[nodiscard]] inline std::vector<double> token() {
  return {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
}
[[nodiscard]] inline std::vector<double> request() {
  return {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
}
[[nodiscard]] inline std::vector<double> tokens() {
  return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};
}
[[nodiscard]] inline std::vector<double> choices() {
  return {1, 2, 5, 10, 20};
}
[[nodiscard]] inline std::vector<double> http() {
  return {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 600};
}

}  // namespace sangam::buckets
