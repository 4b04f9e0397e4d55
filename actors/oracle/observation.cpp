// Integrals over letters, and requests by their arrival.
#include "actors/oracle/observation.hpp"

#include <algorithm>

namespace sangam {
namespace {

constexpr double kNearlyAll = 0.8;       // Of a window's time.
constexpr double kRequestsMin = 8.0;     // In a window, before it ends by its length.
constexpr int kLengthsMax = 6;           // A window ends after so many lengths, whatever it has.
constexpr Millis kLetterDelay{250};      // Gateways tell twice a second.

/// Whether the request is one that we could have served in time or not.
bool tells(ErrorCode code) {
  switch (code) {
    case ErrorCode::none:
    case ErrorCode::queue_full:
    case ErrorCode::cannot_be_on_time:
    case ErrorCode::expired:
    case ErrorCode::unavailable:
    case ErrorCode::exhausted: return true;
    default: return false;
  }
}

}  // namespace

void UsedDemand::add(const ActorName& worker, const LoadDelta& delta) {
  Integral& integral = workers_[worker];
  integral.seconds += delta.seconds;
  integral.sum.kv_bytes += delta.kv_bytes * delta.seconds;
  integral.sum.compute += delta.compute * delta.seconds;
  integral.sum.bandwidth += delta.bandwidth * delta.seconds;
  prefill_tokens_ += delta.prefill_tokens;
}

Demand UsedDemand::mean(double seconds) const {
  Demand demand;
  for (const auto& [worker, integral] : workers_) {
    const double time = integral.seconds >= kNearlyAll * seconds ? integral.seconds : seconds;
    demand.kv_bytes += integral.sum.kv_bytes / time;
    demand.compute += integral.sum.compute / time;
    demand.bandwidth += integral.sum.bandwidth / time;
  }
  return demand;
}

double UsedDemand::workers(double seconds) const {
  double workers = 0.0;
  for (const auto& [worker, integral] : workers_) {
    workers += integral.seconds >= kNearlyAll * seconds ? 1.0 : integral.seconds / seconds;
  }
  return workers;
}

void UsedDemand::reset() {
  workers_.clear();
  prefill_tokens_ = 0.0;
}

void AttainmentWindows::note(const ServedRequest& request, Instant now) {
  if (!tells(request.code) || windows_.empty()) return;
  const auto later_tokens = std::max<std::int64_t>(0, request.output.count() - 1);
  const Instant came = now - kLetterDelay - request.ttft - request.tpot * later_tokens;
  const auto window = std::find_if(windows_.begin(), windows_.end(), [&](const AttainmentWindow& w) {
    return came >= w.begin && (came < w.end || &w == &windows_.back());
  });
  if (window == windows_.end()) return;  // Longer ago than anything is waited for.
  const bool failed = request.code != ErrorCode::none;
  const bool first_late = failed || (request.ttft_slo > Millis(0) && request.ttft > request.ttft_slo);
  if (request.ttft_slo > Millis(0)) {
    window->first.requests += 1.0;
    window->first.on_time += first_late ? 0.0 : 1.0;
  }
  if (request.tpot_slo <= Millis(0) || (later_tokens == 0 && !failed)) return;
  window->later.requests += 1.0;
  if (failed) return;
  const double late = double(request.late.count()) - (first_late ? 1.0 : 0.0);
  window->later.on_time += std::clamp(1.0 - late / double(later_tokens), 0.0, 1.0);
}

AttainmentWindow* AttainmentWindows::tick(int workers, double arrived, Instant now) {
  if (windows_.empty()) {
    windows_.push_back({now, Instant::max(), arrived, workers, true, {}, {}, {}, {}});
    return nullptr;
  }
  AttainmentWindow& open = windows_.back();
  open.steady &= open.workers == workers;
  const bool enough = arrived - open.arrived_before >= kRequestsMin;
  if (now < open.begin + options_.length * (enough ? 1 : kLengthsMax)) return nullptr;
  open.end = now;
  windows_.push_back({now, Instant::max(), arrived, workers, true, {}, {}, {}, {}});
  return &windows_[windows_.size() - 2];
}

std::optional<AttainmentWindow> AttainmentWindows::complete(Instant now) {
  if (windows_.size() < 2 || now < windows_.front().end + options_.lag) return std::nullopt;
  AttainmentWindow window = std::move(windows_.front());
  windows_.pop_front();
  return window;
}

}  // namespace sangam
