// What a stock's models weigh, and who gives way in host memory.
#include <algorithm>

#include "gpu/residency/model_stock.hpp"

namespace sangam {
namespace {

/// What reading a model again costs, for weighing one against another only.
double seconds_to_read(Bytes bytes) {
  constexpr double kOpening = 0.05;
  constexpr double kBytesPerSecond = 1e9;
  return kOpening + double(bytes.count()) / kBytesPerSecond;
}

}  // namespace

void ModelStock::note_host_copy(Entry& entry) {
  const Bytes bytes = entry.blueprint->bytes();
  const double gigabytes = std::max(double(bytes.count()), 1.0) / 1e9;
  entry.priority = clock_ + entry.uses * seconds_to_read(bytes) / gigabytes;
}

bool ModelStock::make_host_room(const ModelId& but) {
  auto victim = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->first == but || entry->second.host.empty()) continue;
    if (victim == entries_.end() || entry->second.priority < victim->second.priority) victim = entry;
  }
  if (victim == entries_.end()) return false;
  clock_ = victim->second.priority;
  drop_host_copy(victim->first, victim->second);
  return true;
}

void ModelStock::drop_host_copy(const ModelId& model, Entry& entry) {
  entry.host.clear();
  changed();
  if (entry.residency != Residency::warm) return;
  entry.residency = Residency::cold;
  entry.blueprint.reset();
  demoted_.push_back(model);
}

std::set<Digest> ModelStock::digests_on_device(std::span<const ModelId> but) const {
  std::set<Digest> digests;
  for (const auto& [model, entry] : entries_) {
    if (entry.residency != Residency::active || std::find(but.begin(), but.end(), model) != but.end()) continue;
    for (const WantedSlot& slot : entry.blueprint->slots) digests.insert(slot.digest);
  }
  return digests;
}

bool ModelStock::would_fit(const ModelId& model, std::span<const ModelId> asleep) const {
  const Entry& entry = entries_.at(model);
  if (!entry.blueprint) return false;
  std::set<Digest> stay = digests_on_device(asleep);
  std::set<Digest> counted = stay;
  Bytes freed;
  for (const ModelId& other : asleep) {
    const Entry& leaving = entries_.at(other);
    if (leaving.residency != Residency::active) continue;
    for (const WantedSlot& slot : leaving.blueprint->slots) {
      if (counted.insert(slot.digest).second) freed += slot.bytes;
    }
  }
  Bytes needed;
  for (const WantedSlot& slot : entry.blueprint->slots) {
    if (stay.insert(slot.digest).second) needed += slot.bytes;
  }
  const PagePool& pool = parts_.segments.pool();
  const Pages one_for_kv{1};
  return pool.pages_for(needed) + one_for_kv <= pool.available() + Pages(freed / pool.page_bytes());
}

const ModelBytes& ModelStock::bytes(const ModelId& model) const {
  const auto [entry, is_new] = measured_.try_emplace(model);
  if (is_new) entry->second = measure(model, entries_.at(model));
  return entry->second;
}

ModelBytes ModelStock::measure(const ModelId& model, const Entry& entry) const {
  ModelBytes bytes;
  if (!entry.blueprint) return bytes;
  bytes.weights = entry.blueprint->bytes();
  if (entry.table) {
    const TableShares& mine = shares().tables.at(model);
    bytes.own = mine.total - mine.shared;
  } else {
    const std::vector<Digest> absent = parts_.segments.missing(entry.blueprint->slots);
    std::set<Digest> missing(absent.begin(), absent.end());
    for (const WantedSlot& slot : entry.blueprint->slots) {
      if (missing.erase(slot.digest) > 0) bytes.missing += slot.bytes;
    }
  }
  std::set<const HostSegment*> copies;
  for (const auto& copy : entry.host) {
    if (copies.insert(copy.get()).second) bytes.host += Bytes(std::int64_t(copy->bytes().size()));
  }
  return bytes;
}

Bytes ModelStock::shared() const {
  return shares().apart - shares().together;
}

const SegmentShares& ModelStock::shares() const {
  if (shares_) return *shares_;
  std::map<ModelId, const SlotTable*> tables;
  for (const auto& [model, entry] : entries_) {
    if (entry.adopted) tables[model] = &entry.adopted->first;
    if (entry.table) tables[model] = &*entry.table;
  }
  return shares_.emplace(shares_of(tables));
}

void ModelStock::changed() {
  measured_.clear();
  shares_.reset();
}

}  // namespace sangam
