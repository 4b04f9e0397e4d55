// Makes the tensors of a group of slots: canonicals for those that share, and what each member adds.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/merger/search/slot_form.hpp"
#include "actors/merger/weights/encoder.hpp"
#include "actors/merger/weights/operators.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam::merging {

/// One slot of one model, as it is.
struct GroupMember {
  const DenseMatrix* weights = nullptr;
  const Gram* gram = nullptr;  ///< Of its inputs.
};

/// A tensor that a checkpoint will hold. `suffix` follows the slot's name: ".weight.b4".
struct SlotTensor {
  std::string suffix;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  [[nodiscard]] TensorView view() const { return {dtype, shape, bytes}; }
};

/// A slot in some form: all its tensors, the canonical among them, and what they stand for.
struct FormedSlot {
  std::vector<SlotTensor> tensors;
  std::size_t own_bytes = 0;        ///< Of all but the canonical.
  std::size_t canonical_bytes = 0;  ///< 0 where nothing is shared.
  double error = 0.0;               ///< Of its outputs; see output_error.
};

/// Deterministic: the same members and form give the same bytes. Canonicals are kept, so forms of one group are best
/// made by one forge. One thread at a time.
class GroupForge {
 public:
  /// All members are of one shape; what they point to outlives the forge.
  GroupForge(std::vector<GroupMember> members, const DenseMatrix* ancestor, OperatorOptions options);

  /// Any form but a slot's own weights as they are.
  [[nodiscard]] Result<FormedSlot> form(std::size_t member, const SlotForm& form);

 private:
  struct Canonical {
    SlotTensor tensor;
    DenseMatrix weights;
  };
  using CanonicalKey = std::pair<std::uint32_t, std::optional<RowCode>>;

  [[nodiscard]] Result<const Canonical*> canonical(const SlotForm& form);
  [[nodiscard]] const ErrorFeedback& feedback(std::size_t member);
  /// Of what a member's own weights are beyond `now`.
  [[nodiscard]] const LowRankParts& low_rank(std::size_t member, const SlotForm& form, const DenseMatrix& now);

  std::vector<GroupMember> members_;
  const DenseMatrix* ancestor_;
  OperatorOptions options_;
  std::map<CanonicalKey, Canonical> canonicals_;
  std::map<std::uint32_t, DenseMatrix> merged_;  ///< By who shares, before it is stored in any code.
  std::map<std::size_t, ErrorFeedback> feedback_;
  std::map<std::pair<std::size_t, SlotForm>, LowRankParts> low_ranks_;  ///< By the form without rank and delta.
};

}  // namespace sangam::merging
