// Turns names and bytes into indices and shares.
#include "actors/placement/board.hpp"

#include <algorithm>
#include <tuple>

namespace sangam {
namespace {

/// A model of which no table is known cannot be a candidate; the caller has looked.
Item item_of(const Candidate& candidate, const WeightParts& parts, double pool) {
  Item item;
  const Promised& reserved = candidate.placed.reserved;
  item.own = {double((reserved.kv + parts.alone).count()) / pool, reserved.compute, reserved.bandwidth};
  item.pieces = parts.pieces;
  item.family = parts.family;
  item.weights = double(parts.all.count()) / pool;
  item.rate = reserved.rate;
  return item;
}

void add_workers(Board& board, const KnownWorkers& hosts, std::int64_t devices, const std::set<ActorName>& in_use,
                 const std::map<ActorName, std::size_t>& elastic) {
  std::vector<std::tuple<int, std::size_t, ActorName>> order;
  for (const auto& [name, host] : hosts) {
    if (host.devices != devices || host.pool <= Bytes(0)) continue;
    const auto taken = elastic.find(name);
    const bool is_elastic = taken != elastic.end();
    order.emplace_back(in_use.contains(name) ? 0 : is_elastic ? 2 : 1, is_elastic ? taken->second : 0, name);
    board.pool = std::max(board.pool, host.pool);
  }
  std::sort(order.begin(), order.end());
  for (auto& [rank, instances, name] : order) {
    board.problem.ranks.push_back(rank);
    board.workers.push_back(std::move(name));
  }
}

/// Workers of one kind have equal pools and know the same models.
void add_kinds(Board& board, const KnownWorkers& hosts) {
  std::map<std::tuple<Bytes, std::size_t, std::uint64_t>, KindIndex> kinds;
  for (const ActorName& worker : board.workers) {
    const KnownWorker& host = hosts.at(worker);
    const auto [entry, is_new] =
        kinds.try_emplace({host.pool, host.models.size(), host.catalogue}, KindIndex(board.problem.kinds.size()));
    board.problem.bins.push_back(entry->second);
    if (!is_new) continue;
    BinKind& kind = board.problem.kinds.emplace_back();
    kind.hbm_scale = double(board.pool.count()) / double(host.pool.count());
    for (const InstanceKey& key : board.keys) kind.holds.push_back(host.models.contains(key.model));
  }
}

}  // namespace

Board make_board(const KnownWorkers& hosts, std::int64_t devices, std::span<const Candidate> candidates, WeightMap& weights,
                 const std::map<ActorName, std::size_t>& elastic) {
  Board board;
  std::set<ActorName> in_use;
  for (const Candidate& candidate : candidates) {
    if (!candidate.placed.worker.empty()) in_use.insert(candidate.placed.worker);
  }
  add_workers(board, hosts, devices, in_use, elastic);
  const double pool = double(std::max(board.pool, Bytes(1)).count());
  for (const Bytes piece : weights.pieces()) board.problem.pieces.push_back(double(piece.count()) / pool);
  std::map<ActorName, BinIndex> bin_of;
  for (BinIndex b = 0; b < board.workers.size(); ++b) bin_of.emplace(board.workers[b], b);
  std::map<ModelId, BinIndex> active_at;
  for (BinIndex b = 0; b < board.workers.size(); ++b) {
    for (const ModelId& model : hosts.at(board.workers[b]).active) active_at.emplace(model, b);
  }
  board.placed.resize(board.workers.size());
  std::map<ModelId, std::uint32_t> models;
  for (const Candidate& candidate : candidates) {
    const auto index = ItemIndex(board.keys.size());
    Item& item = board.problem.items.emplace_back(item_of(candidate, *weights.parts(candidate.key.model), pool));
    item.model = models.try_emplace(candidate.key.model, std::uint32_t(models.size())).first->second;
    board.keys.push_back(candidate.key);
    const auto bin = bin_of.find(candidate.placed.worker);
    if (bin != bin_of.end()) {
      item.home = bin->second;
      board.placed[bin->second].push_back(index);
    } else if (const auto active = active_at.find(candidate.key.model); active != active_at.end()) {
      item.home = active->second;
    }
  }
  add_kinds(board, hosts);
  return board;
}

Packing present_on(const Board& board, const KnownWorkers& hosts) {
  std::map<ModelId, ItemIndex> first_of;
  for (ItemIndex i = 0; i < board.keys.size(); ++i) first_of.emplace(board.keys[i].model, i);
  Packing present(board.workers.size());
  for (BinIndex b = 0; b < board.workers.size(); ++b) {
    for (const ModelId& model : hosts.at(board.workers[b]).active) {
      const auto first = first_of.find(model);
      if (first == first_of.end()) continue;
      const auto placed = std::find_if(board.placed[b].begin(), board.placed[b].end(),
                                       [&](ItemIndex i) { return board.keys[i].model == model; });
      present[b].push_back(placed == board.placed[b].end() ? first->second : *placed);
    }
  }
  return present;
}

}  // namespace sangam
