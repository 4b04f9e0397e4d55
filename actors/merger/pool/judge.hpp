// What the gate says of a state of the pool.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/merger/evaluation/paired.hpp"
#include "actors/merger/pool/shelf.hpp"
#include "actors/merger/search/search.hpp"
#include "storage/hash/digest.hpp"

namespace sangam::merging {

/// Names the forms of one model's sites.
[[nodiscard]] Digest digest_of_model(const Pool& pool, std::uint32_t model, const PoolState& state);
/// Names all forms.
[[nodiscard]] Digest digest_of_state(const PoolState& state);

class Judge {
 public:
  /// `shelf` outlives the judge. `alpha`: the error of the bounds that accept.
  Judge(Shelf& shelf, double alpha, int threads);

  /// How the models are as they are; before the first verdict. Refused where a gate could accept nothing, because it has
  /// too few items, or anything, because its model is right on no more than it may lose.
  [[nodiscard]] Result<void> prepare();
  /// By model. What has been judged before is not computed again. As soon as its items show that a model is beyond its
  /// budget it is not judged by the others; to be accepted takes all of them.
  [[nodiscard]] Result<std::vector<Verdict>> judge(const PoolState& state);
  /// On items that no decision has seen.
  [[nodiscard]] Result<std::vector<PairedCounts>> certify(const PoolState& state);

  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }

 private:
  [[nodiscard]] Result<Verdict> judge_model(std::uint32_t model, const PoolState& state);
  /// `stops`: when the answer is clear.
  [[nodiscard]] Result<PairedCounts> compare(std::uint32_t model, const PoolState& state, std::span<const AnswerKey> items,
                                             const std::vector<bool>& before, bool stops);

  Shelf& shelf_;
  double alpha_;
  int threads_;
  std::vector<std::vector<bool>> gate_before_;  ///< By model and item.
  std::mutex mutex_;
  std::map<Digest, Verdict> known_;  ///< By the model's number and forms.
  std::int64_t evaluations_ = 0;     ///< Of a model in a state.
};

}  // namespace sangam::merging
