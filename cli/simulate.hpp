// `sangam simulate`: a trace against a fleet in virtual time, with the production cores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/trace_part.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

struct SimulateOptions {
  std::string trace;  ///< A file; empty: W0.
  std::uint64_t seed = 1;
  double rate = 1.0;
  TracePart part;
  double time_scale = 48.0;  ///< Seconds of the service's day in one of the trace, for device-hours.
  std::vector<std::string> controls{"sangam"};
  std::string dispatch = "lst_imh";
  std::string base = "dense-8b";  ///< Of the models, where the trace is not W0.
  double shared = 0.0;  ///< Of their weights, what fine-tunes of one base have in common.
  std::vector<std::string> profiles;  ///< Files or folders; not empty: they say what models cost.
  std::vector<std::string> workers;  ///< "DEVICES=COUNT"; empty: 768 devices as W0 needs them.
  double attainment = 0.997;
  double slo = 1.0;
  bool refuse = false;  ///< What would be late, instead of serving it as best effort.
  std::string what_if;  ///< A snapshot's file, or the address of a mesh to take it from; empty: a trace is played.
  std::vector<std::string> changes;
  double seconds = 180.0;  ///< Of the trace that a what-if makes.
  std::string key;
  std::string json;
  std::string svg;
};

/// Prints a report for one control, a comparison for several; the error says which option is wrong and how.
[[nodiscard]] Result<void> simulate_and_report(const SimulateOptions& options);

}  // namespace sangam
