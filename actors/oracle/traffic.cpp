// Differences of counts, and which window to believe.
#include "actors/oracle/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sangam {
namespace {

constexpr int kLateLettersMax = 4;
constexpr double kSurprise = 2.5;     // Deviations from which a short window is believed.
constexpr double kRandomCounts = 32.0;  // Requests that are taken to have come at random before any was seen.
constexpr double kLengthsMin = 32.0;  // Requests from which moments are taken from a window.

double seconds(Instant from, Instant to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

void TrafficWindows::on(const QueueStatus& status) {
  if (has_letter_ && status.sequence <= letter_.sequence) {
    late_letters_ = status.sequence > late_sequence_ ? late_letters_ + 1 : 1;
    late_sequence_ = status.sequence;
    if (late_letters_ < kLateLettersMax) return;
    has_letter_ = false;
  }
  const bool fell = has_letter_ && (status.arrived < letter_.arrived || status.ended < letter_.ended);
  // The first letter since the queue's start says what came since then: all of it is new.
  if (!has_letter_ || fell) letter_ = status.sequence <= 1 ? QueueStatus{} : status;
  const auto count = double(status.arrived - letter_.arrived);
  if (has_letter_ && !fell && status.sequence == letter_.sequence + 1) {
    if (count_) {
      totals_.changes += 0.5 * (count - *count_) * (count - *count_);
      totals_.counted += count;
    }
    count_ = count;
  } else {
    count_.reset();
  }
  totals_.arrived += count;
  totals_.input += double(status.input_tokens) - double(letter_.input_tokens);
  totals_.input_squared += status.input_tokens_squared - letter_.input_tokens_squared;
  totals_.ended += double(status.ended - letter_.ended);
  totals_.output += double(status.output_tokens) - double(letter_.output_tokens);
  totals_.output_squared += status.output_tokens_squared - letter_.output_tokens_squared;
  letter_ = status;
  has_letter_ = true;
  late_letters_ = 0;
  late_sequence_ = 0;
}

void TrafficWindows::tick(Instant now) {
  totals_.at = now;
  ticks_.push_back(totals_);
  ticks_.back().fast_rate = fast_rate();
  while (ticks_.size() > 2 && ticks_[1].at <= now - windows_.past) ticks_.pop_front();
}

const TrafficTotals& TrafficWindows::at(Instant time) const {
  const auto after = std::upper_bound(ticks_.begin(), ticks_.end(), time,
                                      [](Instant t, const TrafficTotals& tick) { return t < tick.at; });
  return after == ticks_.begin() ? ticks_.front() : *std::prev(after);
}

Traffic TrafficWindows::of(const TrafficTotals& from, const TrafficTotals& to) const {
  Traffic traffic;
  const double time = seconds(from.at, to.at);
  if (time <= 0.0) return traffic;
  const auto moments = [](double count, double sum, double squares, double& mean, double& variance) {
    if (count <= 0.0) return;
    mean = std::max(0.0, sum / count);
    variance = std::max(0.0, squares / count - mean * mean);
  };
  const double arrived = to.arrived - from.arrived;
  traffic.requests_per_second = arrived / time;
  traffic.input_tokens_per_second = std::max(0.0, to.input - from.input) / time;
  moments(arrived, to.input - from.input, to.input_squared - from.input_squared, traffic.input_mean,
          traffic.input_variance);
  moments(to.ended - from.ended, to.output - from.output, to.output_squared - from.output_squared,
          traffic.output_mean, traffic.output_variance);
  return traffic;
}

Traffic TrafficWindows::between(Instant from, Instant to) const {
  return ticks_.empty() ? Traffic{} : of(at(from), at(to));
}

Traffic TrafficWindows::over(Millis window) const {
  return ticks_.empty() ? Traffic{} : of(at(ticks_.back().at - window), ticks_.back());
}

bool TrafficWindows::contradicts(Millis part, Millis whole) const {
  const TrafficTotals& end = ticks_.back();
  const TrafficTotals& begin = at(end.at - whole);
  const TrafficTotals& middle = at(end.at - part);
  const double share = seconds(middle.at, end.at) / std::max(1e-9, seconds(begin.at, end.at));
  if (share >= 1.0) return false;
  const double all = end.arrived - begin.arrived;
  const double surprise = (end.arrived - middle.arrived) - all * share;
  return surprise * surprise > kSurprise * kSurprise * (all * share * (1.0 - share) + 1.0);
}

Traffic TrafficWindows::believed() const {
  if (ticks_.size() < 2) return {};
  const std::array<Millis, 3> windows{windows_.fast, windows_.slow, windows_.past};
  std::size_t rate = 2;
  while (rate > 0 && (contradicts(windows[rate - 1], windows[rate]) ||
                      (rate == 2 && over(windows[1]).requests_per_second *
                                            std::chrono::duration<double>(windows[1]).count() >= kLengthsMin))) {
    --rate;
  }
  const TrafficTotals& end = ticks_.back();
  Traffic traffic = over(windows[rate]);
  std::size_t inputs = rate;
  while (inputs < 2 && end.arrived - at(end.at - windows[inputs]).arrived < kLengthsMin) ++inputs;
  std::size_t outputs = std::max<std::size_t>(rate, 1);
  while (outputs < 2 && end.ended - at(end.at - windows[outputs]).ended < kLengthsMin) ++outputs;
  const Traffic in = over(windows[inputs]);
  const Traffic out = over(windows[outputs]);
  traffic.input_mean = in.input_mean;
  traffic.input_variance = in.input_variance;
  traffic.input_tokens_per_second = traffic.requests_per_second * in.input_mean;
  const bool has_outputs = end.ended > at(end.at - windows[outputs]).ended;
  traffic.output_mean = has_outputs ? out.output_mean : output_prior_;
  traffic.output_variance = has_outputs ? out.output_variance : output_prior_ * output_prior_;
  traffic.peakedness = peakedness();
  return traffic;
}

double TrafficWindows::volatility() const {
  if (ticks_.size() < 2) return 1.0;
  const double time = seconds(ticks_.front().at, ticks_.back().at);
  const double mean = time > 0.0 ? (ticks_.back().input - ticks_.front().input) / time : 0.0;
  if (mean <= 0.0) return 1.0;
  double peak = mean;
  for (const TrafficTotals& tick : ticks_) peak = std::max(peak, tick.fast_rate);
  return peak / mean;
}

double TrafficWindows::peakedness() const {
  if (ticks_.empty()) return 1.0;
  const double changes = ticks_.back().changes - ticks_.front().changes;
  const double counted = ticks_.back().counted - ticks_.front().counted;
  return std::max(1.0, (kRandomCounts + changes) / (kRandomCounts + counted));
}

double TrafficWindows::fast_rate() const {
  const TrafficTotals& end = ticks_.back();
  const TrafficTotals& begin = at(end.at - windows_.fast);
  if (end.at - begin.at < windows_.fast) return 0.0;
  return (end.input - begin.input) / seconds(begin.at, end.at);
}

}  // namespace sangam
