// A canonical is stored first; what members add makes good what it, as stored, leaves.
#include "actors/merger/forge/group_forge.hpp"

#include <cstring>
#include <span>

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

std::vector<std::byte> bf16_bytes(const DenseMatrix& rounded) {
  std::vector<std::byte> bytes(rounded.values.size() * 2);
  for (std::size_t i = 0; i < rounded.values.size(); ++i) {
    // The upper half of a float that bf16 represents exactly is that bf16.
    std::uint32_t bits = 0;
    std::memcpy(&bits, &rounded.values[i], sizeof bits);
    const auto half = std::uint16_t(bits >> 16);
    std::memcpy(bytes.data() + 2 * i, &half, sizeof half);
  }
  return bytes;
}

SlotTensor plain(std::string suffix, const DenseMatrix& rounded) {
  return {std::move(suffix), DType::bf16, {rounded.rows, rounded.columns}, bf16_bytes(rounded)};
}

SlotTensor vector_of(std::string suffix, const std::vector<float>& values) {
  SlotTensor tensor{std::move(suffix), DType::f32, {std::int64_t(values.size())}, {}};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

SlotTensor coded(const char* kind, RowCode code, EncodedMatrix&& matrix) {
  const auto rows = matrix.decoded.rows;
  const auto row = std::int64_t(matrix.bytes.size()) / rows;
  return {"." + std::string(kind) + "." + std::string(suffix_of(code)), DType::u8, {rows, row}, std::move(matrix.bytes)};
}

/// The sum of the members' grams, each at the same scale.
Gram joined(std::span<const GroupMember> members, std::uint32_t sharing) {
  Gram out;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if ((sharing >> i & 1u) == 0) continue;
    const Gram& one = *members[i].gram;
    if (out.values.empty()) out = {one.columns, std::vector<double>(one.values.size(), 0.0)};
    double trace = 0.0;
    for (std::int64_t k = 0; k < one.columns; ++k) trace += one.values[std::size_t(k * one.columns + k)];
    const double scale = trace > 0.0 ? double(one.columns) / trace : 0.0;
    for (std::size_t k = 0; k < out.values.size(); ++k) out.values[k] += scale * one.values[k];
  }
  return out;
}

}  // namespace

GroupForge::GroupForge(std::vector<GroupMember> members, const DenseMatrix* ancestor, OperatorOptions options)
    : members_(std::move(members)), ancestor_(ancestor), options_(options) {
  SANGAM_ASSERT(!members_.empty() && members_.size() <= 32, members_.size());
}

const ErrorFeedback& GroupForge::feedback(std::size_t member) {
  const auto found = feedback_.find(member);
  if (found != feedback_.end()) return found->second;
  return feedback_.emplace(member, ErrorFeedback(*members_[member].gram)).first->second;
}

const LowRankParts& GroupForge::low_rank(std::size_t member, const SlotForm& form, const DenseMatrix& now) {
  SlotForm key = form;
  key.rank = 0;
  key.delta.reset();
  const auto found = low_ranks_.find({member, key});
  if (found != low_ranks_.end()) return found->second;
  return low_ranks_.try_emplace({member, key}, difference(*members_[member].weights, now), *members_[member].gram).first->second;
}

Result<const GroupForge::Canonical*> GroupForge::canonical(const SlotForm& form) {
  const CanonicalKey key{form.sharing, form.code};
  if (const auto found = canonicals_.find(key); found != canonicals_.end()) return &found->second;
  auto base = merged_.find(form.sharing);
  if (base == merged_.end()) {
    std::vector<Donor> donors;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (form.sharing >> i & 1u) donors.push_back({members_[i].weights, members_[i].gram});
    }
    auto one = merged(donors, ancestor_, options_);
    if (!one) return one.error();
    base = merged_.emplace(form.sharing, std::move(*one)).first;
  }
  Canonical made;
  if (form.code) {
    EncodedMatrix matrix = encode(base->second, *form.code, ErrorFeedback(joined(members_, form.sharing)));
    made.weights = matrix.decoded;
    made.tensor = coded("weight", *form.code, std::move(matrix));
  } else {
    made.weights = rounded_to_bf16(base->second);
    made.tensor = plain(".weight", made.weights);
  }
  return &canonicals_.emplace(key, std::move(made)).first->second;
}

Result<FormedSlot> GroupForge::form(std::size_t member, const SlotForm& form) {
  const GroupMember& own = members_[member];
  FormedSlot out;
  DenseMatrix now;
  if (!form.is_shared()) {
    SANGAM_ASSERT(form.code.has_value(), "own weights as they are stay in their checkpoint");
    EncodedMatrix matrix = encode(*own.weights, *form.code, feedback(member));
    now = matrix.decoded;
    out.tensors.push_back(coded("weight", *form.code, std::move(matrix)));
  } else {
    const auto shared = canonical(form);
    if (!shared) return shared.error();
    out.tensors.push_back((*shared)->tensor);
    out.canonical_bytes = (*shared)->tensor.bytes.size();
    now = (*shared)->weights;
  }
  if (form.affine) {
    RowAffine line = row_affine(*own.weights, now, *own.gram);
    now = std::move(line.applied);
    out.tensors.push_back(vector_of(".row_scale", line.scale));
    out.tensors.push_back(vector_of(".row_shift", line.shift));
  }
  if (form.rank > 0) {
    LowRankMatrix part = low_rank(member, form, now).cut(form.rank);
    now = sum(now, part.product);
    out.tensors.push_back(plain(".low_rank.up", part.up));
    out.tensors.push_back(plain(".low_rank.down", part.down));
  }
  if (form.delta) {
    EncodedMatrix rest = encode(difference(*own.weights, now), *form.delta, feedback(member));
    now = sum(now, rest.decoded);
    out.tensors.push_back(coded("delta", *form.delta, std::move(rest)));
  }
  for (const SlotTensor& tensor : out.tensors) out.own_bytes += tensor.bytes.size();
  out.own_bytes -= out.canonical_bytes;
  out.error = output_error(*own.weights, now, *own.gram);
  return out;
}

}  // namespace sangam::merging
