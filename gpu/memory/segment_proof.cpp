// Which of a load's slots share bytes that are there: digests choose, the bytes themselves decide.
#include <algorithm>
#include <cstring>

#include "gpu/device/parallel.hpp"
#include "gpu/memory/segment_load.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::size_t kThreads = 8;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // Large beside what a thread costs, small beside a call.

}  // namespace

std::optional<std::size_t> SegmentLoad::fresh_like(const Digest& digest, Bytes size, std::size_t place) const {
  const auto found = fresh_by_digest_.find(digest);
  if (found == fresh_by_digest_.end()) return std::nullopt;
  for (const std::size_t fresh : found->second) {
    if (fresh_[fresh].size == size && place-- == 0) return fresh;
  }
  return std::nullopt;
}

std::size_t SegmentLoad::add_fresh(const Digest& digest, Bytes size, std::span<const std::byte> source) {
  fresh_by_digest_[digest].push_back(fresh_.size());
  Fresh& fresh = fresh_.emplace_back();
  fresh.digest = digest;
  fresh.size = size;
  fresh.source = source;
  return fresh_.size() - 1;
}

/// It has a source: what is awaited is taken from the first slot that has one, without a claim.
std::optional<std::size_t> SegmentLoad::fresh_candidate(const Claim& claim) const {
  return fresh_like(claim.digest, Bytes(std::int64_t(claim.source.size())), claim.candidate - claim.residents.size());
}

std::optional<std::span<const std::byte>> SegmentLoad::candidate_of(const Claim& claim) const {
  if (claim.candidate < claim.residents.size()) return claim.residents[claim.candidate]->bytes();
  const auto fresh = fresh_candidate(claim);
  if (!fresh) return std::nullopt;
  return fresh_[*fresh].source;
}

/// Its candidate is equal.
void SegmentLoad::settle(const Claim& claim) {
  Slot& slot = slots_[claim.slot];
  if (claim.candidate < claim.residents.size()) {
    slot.resident = claim.residents[claim.candidate];
  } else {
    slot.fresh = *fresh_candidate(claim);
  }
}

std::vector<SegmentLoad::Piece> SegmentLoad::next_pieces(std::size_t most) const {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < claims_.size() && most > 0; ++i) {
    const Claim& claim = claims_[i];
    const std::span there = *candidate_of(claim);
    for (std::size_t at = claim.compared; at < there.size() && most > 0;) {
      const std::size_t bytes = std::min({kPieceBytes, there.size() - at, most});
      pieces.push_back({there.subspan(at, bytes), claim.source.subspan(at, bytes), i});
      at += bytes;
      most -= bytes;
    }
  }
  return pieces;
}

/// Not 0: equal. What cannot be read is not proven, and will lie there twice.
std::vector<char> SegmentLoad::compare(std::span<const Piece> pieces) const {
  std::vector<char> equal(pieces.size());
  Device& device = pool_->device();
  if (device.host_access()) {
    for_each_index(pieces.size(), kThreads, [&](std::size_t i) {
      const auto& [there, source, claim] = pieces[i];
      equal[i] = there.data() == source.data() || std::memcmp(there.data(), source.data(), source.size()) == 0;
    });
    return equal;
  }
  auto theirs = HostView::create(device, Bytes(std::int64_t(kPieceBytes)));
  auto ours = HostView::create(device, Bytes(std::int64_t(kPieceBytes)));
  if (!theirs || !ours) return equal;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto there = theirs->read(pieces[i].there);
    const auto source = ours->read(pieces[i].source);
    equal[i] = there && source && std::memcmp(there->data(), source->data(), source->size()) == 0;
  }
  return equal;
}

Result<void> SegmentLoad::prove(Bytes most) {
  SANGAM_ASSERT(!failed_ && copied_ == Bytes{0}, "a load is proven before it is copied", copied_);
  const std::vector<Piece> pieces = next_pieces(std::size_t(std::max(most, Bytes{1}).count()));
  const std::vector<char> equal = compare(pieces);
  std::vector<char> is_wrong(claims_.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    claims_[pieces[i].claim].compared += pieces[i].source.size();
    is_wrong[pieces[i].claim] |= char(equal[i] == 0);
  }
  std::vector<Claim> left;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    Claim& claim = claims_[i];
    if (is_wrong[i] == 0 && claim.compared == claim.source.size()) {
      settle(claim);
      continue;
    }
    if (is_wrong[i] != 0) {
      ++claim.candidate;
      claim.compared = 0;
    }
    if (candidate_of(claim)) {
      left.push_back(std::move(claim));
    } else {
      // A candidate for those behind it.
      slots_[claim.slot].fresh = add_fresh(claim.digest, Bytes(std::int64_t(claim.source.size())), claim.source);
    }
  }
  claims_ = std::move(left);
  if (!is_proven() || fresh_.size() == reserved_) return {};
  auto reserved = reserve();
  return reserved ? reserved : failed(reserved.error());
}

}  // namespace sangam
