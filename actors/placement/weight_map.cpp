// Groups segments by the set of models that have them.
#include "actors/placement/weight_map.hpp"

#include <algorithm>
#include <unordered_map>

namespace sangam {
namespace {

using Holders = std::vector<std::uint32_t>;

struct SharedSegment {
  Bytes bytes{0};
  Holders holders;  // Ascending.
};

/// Follows `family` from member to member up to the one that stands for all.
std::uint32_t head_of(std::vector<std::uint32_t>& family, std::uint32_t i) {
  while (family[i] != i) i = family[i] = family[family[i]];
  return i;
}

}  // namespace

bool WeightMap::set(const ModelTable& table) {
  ModelTable& known = tables_[table.model];
  const auto same = [](const SegmentSize& a, const SegmentSize& b) { return a.digest == b.digest && a.bytes == b.bytes; };
  const bool is_known = known.model == table.model && known.devices == table.devices &&
                        std::equal(known.segments.begin(), known.segments.end(), table.segments.begin(),
                                   table.segments.end(), same);
  if (is_known) return false;
  known = table;
  is_current_ = false;
  return true;
}

const WeightParts* WeightMap::parts(const ModelId& model) {
  group();
  const auto found = parts_.find(model);
  return found == parts_.end() ? nullptr : &found->second;
}

const std::vector<Bytes>& WeightMap::pieces() {
  group();
  return pieces_;
}

void WeightMap::group() {
  if (is_current_) return;
  is_current_ = true;
  parts_.clear();
  pieces_.clear();
  std::unordered_map<std::uint64_t, SharedSegment> segments;
  std::vector<WeightParts*> by_index;
  for (const auto& [model, table] : tables_) {
    const auto index = std::uint32_t(by_index.size());
    by_index.push_back(&parts_[model]);
    by_index.back()->devices = table.devices;
    for (const SegmentSize& segment : table.segments) {
      SharedSegment& shared = segments[segment.digest];
      if (!shared.holders.empty() && shared.holders.back() == index) continue;  // Named twice.
      shared.bytes = segment.bytes;
      shared.holders.push_back(index);
      by_index.back()->all += segment.bytes;
    }
  }
  std::map<Holders, Bytes> groups;  // Ordered, so that the same tables give the same pieces.
  for (const auto& [digest, segment] : segments) groups[segment.holders] += segment.bytes;
  std::vector<std::uint32_t> family(by_index.size());
  for (std::uint32_t i = 0; i < family.size(); ++i) family[i] = i;
  for (const auto& [holders, bytes] : groups) {
    if (holders.size() == 1) {
      by_index[holders.front()]->alone = bytes;
      continue;
    }
    const auto piece = std::uint32_t(pieces_.size());
    pieces_.push_back(bytes);
    for (const std::uint32_t i : holders) {
      by_index[i]->pieces.push_back(piece);
      family[head_of(family, i)] = head_of(family, holders.front());
    }
  }
  for (std::uint32_t i = 0; i < family.size(); ++i) {
    if (!by_index[i]->pieces.empty()) by_index[i]->family = head_of(family, i);
  }
}

}  // namespace sangam
