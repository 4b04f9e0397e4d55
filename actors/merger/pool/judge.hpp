// What the gate says of a state of the pool.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/merger/pool/shelf.hpp"
#include "actors/merger/search/search.hpp"
#include "storage/hash/digest.hpp"

namespace sangam::merging {

/// Names the forms of one model's sites.
[[nodiscard]] Digest digest_of_model(const Pool& pool, std::uint32_t model, const PoolState& state);
/// Names all forms.
[[nodiscard]] Digest digest_of_state(const PoolState& state);

/// What became of single items: which were right before and which are now.
struct PairedCounts {
  std::int64_t items = 0;
  std::int64_t right_before = 0;
  std::int64_t lost = 0;
  std::int64_t won = 0;

  [[nodiscard]] double drop() const { return items == 0 ? 0.0 : 100.0 * double(lost - won) / double(items); }
};

/// Upper confidence bound of a drop, in points, at the one-sided error `alpha`.
[[nodiscard]] double drop_bound(const PairedCounts& counts, double alpha);

class Judge {
 public:
  /// `shelf` outlives the judge. `alpha`: the error of the bounds that accept.
  Judge(Shelf& shelf, double alpha, int threads);

  /// How the models are as they are; before the first verdict.
  [[nodiscard]] Result<void> prepare();
  /// By model. What has been judged before is not computed again. A model whose first items show that it fails is not
  /// judged by the others.
  [[nodiscard]] Result<std::vector<Verdict>> judge(const PoolState& state);
  /// On items that no decision has seen.
  [[nodiscard]] Result<std::vector<PairedCounts>> certify(const PoolState& state);

  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }

 private:
  [[nodiscard]] Result<Verdict> judge_model(std::uint32_t model, const PoolState& state);
  [[nodiscard]] Result<PairedCounts> compare(std::uint32_t model, const PoolState& state, std::span<const AnswerKey> items,
                                             const std::vector<bool>& before);

  Shelf& shelf_;
  double alpha_;
  int threads_;
  std::vector<std::vector<bool>> gate_before_;  ///< By model and item.
  std::mutex mutex_;
  std::map<Digest, Verdict> known_;  ///< By the model's number and forms.
  std::int64_t evaluations_ = 0;     ///< Of a model in a state.
};

}  // namespace sangam::merging
