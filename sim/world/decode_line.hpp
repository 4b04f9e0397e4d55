// Decoding as a fluid: all sequences of a worker get one token a step, so one line, tokens over time, serves all of
// them, and only its bends cost anything. This is how steady decode is passed over in one go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace sangam::sim {

/// Times in microseconds; tokens are those that a sequence would have got which was always there.
class DecodeLine {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// From `now`, not before the last bend, a step takes so long; kNever: nothing moves.
  void bend(double now, double step) {
    const double tokens = tokens_at(now);
    if (bends_.back().at == now) bends_.pop_back();
    bends_.push_back({now, tokens, step});
  }

  /// Not before the last bend.
  [[nodiscard]] double tokens_at(double now) const {
    if (bends_.empty()) return 0.0;
    const Bend& last = bends_.back();
    return last.tokens + (now - last.at) / last.step;
  }
  /// When the line comes to `tokens`, not fewer than at the last bend, if nothing bends it; kNever where it rests.
  [[nodiscard]] double time_at(double tokens) const {
    const Bend& last = bends_.back();
    return tokens <= last.tokens ? last.at : last.at + (tokens - last.tokens) * last.step;
  }

  /// Calls `take(at)` for the `count` tokens of a sequence that joined when the line was at `from`.
  template <class Take>
  void each_token(double from, std::int64_t count, Take take) const {
    auto bend = std::upper_bound(bends_.begin(), bends_.end(), from,
                                 [](double tokens, const Bend& b) { return tokens < b.tokens; });
    if (bend != bends_.begin()) --bend;
    for (std::int64_t i = 1; i <= count; ++i) {
      const double tokens = from + double(i);
      while (std::next(bend) != bends_.end() && std::next(bend)->tokens < tokens) ++bend;
      take(bend->at + (tokens - bend->tokens) * bend->step);
    }
  }

  [[nodiscard]] std::size_t bends() const { return bends_.size(); }
  /// Nobody will ask about fewer tokens any more.
  void forget_before(double tokens) {
    const auto kept = std::upper_bound(bends_.begin(), bends_.end(), tokens,
                                       [](double t, const Bend& b) { return t < b.tokens; });
    if (kept - bends_.begin() > 1) bends_.erase(bends_.begin(), kept - 1);
  }

 private:
  struct Bend {
    double at = 0.0;
    double tokens = 0.0;
    double step = 0.0;
  };

  std::vector<Bend> bends_{{0.0, 0.0, kNever}};
};

}  // namespace sangam::sim
