// Cutting comes first: its seconds are those of the trace as it was recorded.
#include "cli/trace_part.hpp"

namespace sangam {

Result<sim::Trace> part_of(sim::Trace trace, const TracePart& part, const sim::TraceScaling& scaling,
                           const std::string& name) {
  if (part.from_s > 0.0 || part.for_s > 0.0) {
    const Micros from(std::int64_t(part.from_s * 1e6));
    const Micros until = part.for_s > 0.0 ? from + Micros(std::int64_t(part.for_s * 1e6)) : Micros::max();
    trace = sim::between(std::move(trace), from, until);
  }
  auto left = sim::scaled(std::move(trace), scaling);
  if (!left) return left;
  if (part.limit > 0) *left = sim::limited(std::move(*left), part.limit);
  if (!left->requests.empty()) return left;
  return make_error(ErrorCode::invalid_input, name + ": no request is left of it; widen --from, --for or --rate");
}

}  // namespace sangam
