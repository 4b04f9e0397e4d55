// Ranks of errors, and the predictions that wait for theirs.
#include "actors/scheduler/quotes.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {

void ErrorWindow::add(double error, std::size_t window) {
  latest_.push_back(error);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), error), error);
  if (latest_.size() <= window) return;
  sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), latest_.front()));
  latest_.pop_front();
}

std::optional<std::pair<double, double>> ErrorWindow::bounds(double coverage) const {
  // The next error is as likely to fall into any of the n + 1 gaps between the n known ones. A sum of shares that is
  // an integer but for rounding counts as one.
  const double outside = (double(sorted_.size()) + 1.0) * (1.0 - coverage) / 2.0;
  const auto gaps = std::size_t(std::floor(outside + 1e-9));
  if (gaps == 0) return std::nullopt;
  return std::pair(sorted_[gaps - 1], sorted_[sorted_.size() - gaps]);
}

double Quotes::with_grain(std::optional<Micros> predicted) const {
  return double((predicted.value_or(Micros(0)) + options_.grain).count());
}

std::optional<QuoteInterval> Quotes::interval(ModelIndex model, std::optional<Micros> predicted) const {
  const bool held = predicted.has_value();
  const auto bounds_of = [&](const Errors& errors) {
    return (held ? errors.held : errors.not_held).bounds(options_.coverage);
  };
  const auto own = by_model_.find(model);
  auto bounds = own == by_model_.end() ? std::nullopt : bounds_of(own->second);
  if (!bounds) bounds = bounds_of(of_all_);
  if (!bounds) return std::nullopt;
  const auto time = [&](double ratio) {
    return std::max(Micros(std::llround(ratio * with_grain(predicted))) - options_.grain, Micros(0));
  };
  return QuoteInterval{time(bounds->first), time(bounds->second)};
}

bool Quotes::open(RequestId request, ModelIndex model, std::optional<Micros> predicted, Instant now) {
  if (open_.contains(request) || open_before_.contains(request)) return false;
  if (open_.size() >= std::max<std::size_t>(options_.open_max / 2, 1)) open_before_ = std::exchange(open_, {});
  open_.emplace(request, Open{model, predicted.has_value(), with_grain(predicted), now});
  return true;
}

void Quotes::first_token(RequestId request, Instant now) {
  auto node = open_.extract(request);
  if (node.empty()) node = open_before_.extract(request);
  if (node.empty()) return;
  const Open& quote = node.mapped();
  const double error = double((now - quote.at + options_.grain).count()) / quote.predicted;
  for (Errors* errors : {&by_model_[quote.model], &of_all_}) {
    (quote.held ? errors->held : errors->not_held).add(error, options_.window);
  }
}

}  // namespace sangam
