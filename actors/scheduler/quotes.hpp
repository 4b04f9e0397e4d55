// How far predictions of first tokens can be trusted: intervals that hold nine times in ten, whatever is wrong with
// the prediction.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/scheduler/plan.hpp"
#include "messages/vocabulary/names.hpp"

namespace sangam {

struct QuoteOptions {
  double coverage = 0.9;  ///< Share of first tokens that come within their interval.
  std::size_t window = 256;  ///< Errors that an interval rests on, the latest.
  /// Below this, errors are differences rather than ratios: messages and steps take so long, however short the wait.
  Micros grain{2'000};
  std::size_t open_max = 16'384;  ///< Quotes that wait for their first token; older ones are forgotten.
};

/// The latest errors of one kind, and the quantiles between which the next one lies with the given probability, if it
/// is exchangeable with them (split conformal prediction: Vovk, Gammerman, Shafer, 2005; the ranks are those of
/// Lei et al., 2018, half of the miss on each side).
class ErrorWindow {
 public:
  void add(double error, std::size_t window);
  /// Nothing while so few errors are known that no finite interval would keep the promise: below 19 for 90 %.
  [[nodiscard]] std::optional<std::pair<double, double>> bounds(double coverage) const;

 private:
  std::deque<double> latest_;   // By age.
  std::vector<double> sorted_;  // The same.
};

/// From now on.
struct QuoteInterval {
  Micros earliest{0};
  Micros latest{0};
};

/// An error is the ratio of time and prediction: it is the load that makes both large. Waits for a model that nobody
/// holds are of another kind; there, the prediction is nothing but a unit.
class Quotes {
 public:
  explicit Quotes(QuoteOptions options) : options_(options) {}

  /// By the model's errors, or by those of all models where it has too few. Nothing while these are too few as well.
  /// `predicted`: nothing where no worker holds the model.
  [[nodiscard]] std::optional<QuoteInterval> interval(ModelIndex model, std::optional<Micros> predicted) const;

  /// Remembers a prediction until the first token shows how far it was off. False where the request has one already:
  /// the first counts, since it is what the client was told.
  bool open(RequestId request, ModelIndex model, std::optional<Micros> predicted, Instant now);
  /// Of a request without an open prediction it is ignored.
  void first_token(RequestId request, Instant now);

 private:
  struct Open {
    ModelIndex model = 0;
    bool held = true;
    double predicted = 0.0;  // Microseconds with the grain.
    Instant at{};
  };
  /// What can be said of one model, or of all.
  struct Errors {
    ErrorWindow held;
    ErrorWindow not_held;
  };
  using OpenQuotes = std::unordered_map<RequestId, Open>;

  [[nodiscard]] double with_grain(std::optional<Micros> predicted) const;

  QuoteOptions options_;
  std::map<ModelIndex, Errors> by_model_;
  Errors of_all_;
  OpenQuotes open_;
  OpenQuotes open_before_;  // When `open_` has half of what is allowed it takes this place, and this is forgotten.
};

}  // namespace sangam
