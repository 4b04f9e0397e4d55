// Each operator in its published form; sums in a fixed order, so that equal donors give equal bytes.
#include "actors/merger/weights/operators.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <string>

#include "actors/merger/weights/eigen_views.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

struct Named {
  MergeOperator op;
  std::string_view name;
};
constexpr Named kOperators[] = {{MergeOperator::mean, "mean"},
                                {MergeOperator::weighted_mean, "weighted_mean"},
                                {MergeOperator::regmean_diagonal, "regmean_diagonal"},
                                {MergeOperator::regmean, "regmean"},
                                {MergeOperator::task_arithmetic, "task_arithmetic"},
                                {MergeOperator::ties, "ties"},
                                {MergeOperator::medoid, "medoid"}};

Eigen::MatrixXd wide(const Donor& donor) { return view(*donor.weights).cast<double>(); }

DenseMatrix mean_of(std::span<const Donor> donors) {
  DenseMatrix out = *donors.front().weights;
  for (const Donor& donor : donors.subspan(1)) view(out) += view(*donor.weights);
  view(out) /= float(donors.size());
  return out;
}

DenseMatrix weighted_mean_of(std::span<const Donor> donors) {
  Eigen::MatrixXd out = Eigen::MatrixXd::Zero(donors[0].weights->rows, donors[0].weights->columns);
  double all = 0.0;
  for (const Donor& donor : donors) {
    const double weight = view(*donor.gram).trace();
    out += weight * wide(donor);
    all += weight;
  }
  return all > 0.0 ? dense(out / all) : mean_of(donors);
}

DenseMatrix regmean_of(std::span<const Donor> donors, const OperatorOptions& options) {
  const std::int64_t columns = donors[0].weights->columns;
  Eigen::MatrixXd weights = Eigen::MatrixXd::Zero(donors[0].weights->rows, columns);
  Eigen::MatrixXd inputs = Eigen::MatrixXd::Zero(columns, columns);
  for (const Donor& donor : donors) {
    Eigen::MatrixXd gram = damped(*donor.gram, options.damping);
    if (options.op == MergeOperator::regmean_diagonal) gram = Eigen::MatrixXd(gram.diagonal().asDiagonal());
    weights += wide(donor) * gram;
    inputs += gram;
  }
  return dense(inputs.llt().solve(weights.transpose()).transpose());
}

DenseMatrix medoid_of(std::span<const Donor> donors) {
  const Donor* best = nullptr;
  double least = 0.0;
  for (const Donor& one : donors) {
    double distance = 0.0;
    for (const Donor& other : donors) distance += (wide(one) - wide(other)).squaredNorm();
    if (best == nullptr || distance < least) {
      best = &one;
      least = distance;
    }
  }
  return *best->weights;
}

/// Leaves the share `density` of the entries that are largest by magnitude; of equals, the first.
void trim(Eigen::MatrixXd& delta, double density) {
  const auto kept = std::size_t(std::llround(density * double(delta.size())));
  std::vector<double> sizes(std::size_t(delta.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::abs(delta.data()[i]);
  if (kept == 0) return delta.setZero(), void();
  if (kept >= sizes.size()) return;
  std::vector<double> order = sizes;
  std::nth_element(order.begin(), order.begin() + std::ptrdiff_t(kept - 1), order.end(), std::greater<>());
  const double least = order[kept - 1];
  auto at_least = kept - std::size_t(std::count_if(sizes.begin(), sizes.end(), [&](double s) { return s > least; }));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > least || (sizes[i] == least && at_least > 0 && at_least--)) continue;
    delta.data()[i] = 0.0;
  }
}

DenseMatrix ties_of(std::span<const Donor> donors, const Eigen::MatrixXd& ancestor, const OperatorOptions& options) {
  std::vector<Eigen::MatrixXd> deltas;
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(ancestor.rows(), ancestor.cols());
  for (const Donor& donor : donors) {
    deltas.push_back(wide(donor) - ancestor);
    trim(deltas.back(), options.density);
    sum += deltas.back();
  }
  Eigen::MatrixXd out = ancestor;
  for (Eigen::Index i = 0; i < sum.size(); ++i) {
    double agreed = 0.0;
    int count = 0;
    for (const Eigen::MatrixXd& delta : deltas) {
      const double d = delta.data()[i];
      if (d * sum.data()[i] <= 0.0) continue;
      agreed += d;
      ++count;
    }
    if (count > 0) out.data()[i] += options.lambda * agreed / count;
  }
  return dense(out);
}

DenseMatrix arithmetic_of(std::span<const Donor> donors, const Eigen::MatrixXd& ancestor, const OperatorOptions& options) {
  Eigen::MatrixXd out = ancestor;
  for (const Donor& donor : donors) out += options.lambda * (wide(donor) - ancestor);
  return dense(out);
}

}  // namespace

std::string_view name_of(MergeOperator op) {
  return std::find_if(std::begin(kOperators), std::end(kOperators), [op](const Named& n) { return n.op == op; })->name;
}

Result<MergeOperator> merge_operator_named(std::string_view name) {
  std::string known;
  for (const Named& named : kOperators) {
    if (named.name == name) return named.op;
    known += (known.empty() ? "" : ", ") + std::string(named.name);
  }
  return make_error(ErrorCode::invalid_input, "merge operator '" + std::string(name) + "' is not known; use one of " + known);
}

Result<DenseMatrix> merged(std::span<const Donor> donors, const DenseMatrix* ancestor, const OperatorOptions& options) {
  SANGAM_ASSERT(!donors.empty(), donors.size());
  switch (options.op) {
    case MergeOperator::mean: return mean_of(donors);
    case MergeOperator::weighted_mean: return weighted_mean_of(donors);
    case MergeOperator::regmean_diagonal:
    case MergeOperator::regmean: return regmean_of(donors, options);
    case MergeOperator::medoid: return medoid_of(donors);
    case MergeOperator::task_arithmetic:
    case MergeOperator::ties: break;
  }
  if (ancestor == nullptr) {
    return make_error(ErrorCode::invalid_input, "merge operator " + std::string(name_of(options.op)) +
                                                    " needs a common ancestor that has this slot in this shape; name it in the pool's file, or use regmean");
  }
  const Eigen::MatrixXd base = view(*ancestor).cast<double>();
  return options.op == MergeOperator::ties ? ties_of(donors, base, options) : arithmetic_of(donors, base, options);
}

}  // namespace sangam::merging
