// Each operator against its definition on matrices that are small enough to work out by hand.
#include "actors/merger/weights/operators.hpp"

#include <doctest/doctest.h>

#include "tests/unit/merger/random_weights.hpp"

namespace sangam::merging {
namespace {

DenseMatrix row(std::vector<float> values) { return {1, std::int64_t(values.size()), std::move(values)}; }

std::vector<float> merge(const std::vector<DenseMatrix>& all, const std::vector<Gram>& grams, OperatorOptions options, const DenseMatrix* ancestor = nullptr) {
  std::vector<Donor> donors;
  for (std::size_t i = 0; i < all.size(); ++i) donors.push_back({&all[i], grams.empty() ? nullptr : &grams[i]});
  return merged(donors, ancestor, options).value().values;
}

OperatorOptions of(MergeOperator op) {
  OperatorOptions options;
  options.op = op;
  return options;
}

/// Gradient descent on the sum of all donors' squared output errors: slow, and it knows no formula.
DenseMatrix least_squares(const std::vector<DenseMatrix>& donors, const std::vector<DenseMatrix>& inputs) {
  DenseMatrix w = donors[0];
  for (int round = 0; round < 20'000; ++round) {
    std::vector<double> slope(w.values.size(), 0.0);
    for (std::size_t m = 0; m < donors.size(); ++m) {
      for (std::int64_t r = 0; r < inputs[m].rows; ++r) {
        const float* x = inputs[m].values.data() + r * w.columns;
        for (std::int64_t o = 0; o < w.rows; ++o) {
          double error = 0.0;
          for (std::int64_t c = 0; c < w.columns; ++c) {
            const auto at = std::size_t(o * w.columns + c);
            error += double(x[c]) * double(w.values[at] - donors[m].values[at]);
          }
          for (std::int64_t c = 0; c < w.columns; ++c) slope[std::size_t(o * w.columns + c)] += error * double(x[c]);
        }
      }
    }
    for (std::size_t i = 0; i < slope.size(); ++i) w.values[i] -= float(0.002 * slope[i]);
  }
  return w;
}

}  // namespace

TEST_CASE("the mean is the mean, whatever the inputs") {
  CHECK(merge({row({1, 2}), row({3, 6}), row({5, 1})}, {}, of(MergeOperator::mean)) == std::vector<float>{3, 3});
}

TEST_CASE("the weighted mean leans to those whose inputs are large") {
  const Gram small{2, {1, 0, 0, 1}};
  const Gram large{2, {3, 0, 0, 3}};
  CHECK(merge({row({0, 4}), row({4, 0})}, {small, large}, of(MergeOperator::weighted_mean)) == std::vector<float>{3, 1});
}

TEST_CASE("regmean is the least-squares solution") {
  std::mt19937_64 random(11);
  std::vector<DenseMatrix> donors, inputs;
  std::vector<Gram> grams;
  for (int m = 0; m < 3; ++m) {
    donors.push_back(random_matrix(2, 4, random));
    inputs.push_back(correlated_inputs(12, 4, 3, random));
    // Every donor counts alike: inputs at a mean square of one.
    const Gram gram = gram_of(inputs.back());
    const double scale = std::sqrt((gram.values[0] + gram.values[5] + gram.values[10] + gram.values[15]) / 4.0);
    for (float& value : inputs.back().values) value = float(value / scale);
    grams.push_back(gram_of(inputs.back()));
  }
  OperatorOptions options = of(MergeOperator::regmean);
  options.damping = 0.0;
  const auto out = merge(donors, grams, options);
  const auto expected = least_squares(donors, inputs);
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::abs(out[i] - expected.values[i]) < 2e-3f);
}

TEST_CASE("with independent inputs regmean weighs column by column") {
  const Gram first{2, {3, 9, 9, 1}};  // The nines are what the diagonal form leaves out.
  const Gram second{2, {1, 0, 0, 3}};
  OperatorOptions options = of(MergeOperator::regmean_diagonal);
  options.damping = 0.0;
  CHECK(merge({row({4, 4}), row({0, 0})}, {first, second}, options) == std::vector<float>{3, 1});
}

TEST_CASE("task arithmetic adds the deltas' share to the ancestor") {
  const DenseMatrix base = row({1, 1});
  OperatorOptions options = of(MergeOperator::task_arithmetic);
  options.lambda = 0.5;
  CHECK(merge({row({2, 1}), row({3, -1})}, {}, options, &base) == std::vector<float>{2.5f, 0.0f});
}

TEST_CASE("TIES trims, elects a sign, and averages those that agree") {
  const DenseMatrix base = row({0, 0, 0, 0});
  OperatorOptions options = of(MergeOperator::ties);
  options.lambda = 1.0;
  options.density = 0.5;
  // Kept of the first: 4 and -3; of the second: 6 and 5; of the third: -7 and 2.
  const auto out = merge({row({4, -3, 1, 0}), row({6, 1, 5, 0}), row({-7, 0, 0, 2})}, {}, options, &base);
  // Column 0: 4 + 6 - 7 is positive, so the mean of 4 and 6.
  CHECK(out == std::vector<float>{5, -3, 5, 2});
}

TEST_CASE("the medoid is one of the donors, bit for bit") {
  CHECK(merge({row({0, 0}), row({1, 1}), row({9, 9})}, {}, of(MergeOperator::medoid)) == std::vector<float>{1, 1});
}

TEST_CASE("operators have names, and those that need an ancestor say so") {
  for (const char* name : {"mean", "weighted_mean", "regmean_diagonal", "regmean", "task_arithmetic", "ties", "medoid"}) {
    CHECK(name_of(merge_operator_named(name).value()) == name);
  }
  CHECK(merge_operator_named("slerp").error().context.find("regmean") != std::string::npos);
  const DenseMatrix one = row({1});
  const Donor donor{&one, nullptr};
  CHECK(merged({&donor, 1}, nullptr, of(MergeOperator::ties)).error().context.find("ancestor") != std::string::npos);
}

}  // namespace sangam::merging
