// Slots are found by their names; what is left of a checkpoint stays as it is.
#include "actors/merger/pool/pool.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "actors/merger/pool/parallel.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "storage/hash/digest.hpp"

namespace sangam::merging {
namespace {

struct Projected {
  const char* name;
  InputSite input;
};
constexpr Projected kProjections[] = {{"self_attn.q_proj", InputSite::attention}, {"self_attn.k_proj", InputSite::attention},
                                      {"self_attn.v_proj", InputSite::attention}, {"self_attn.o_proj", InputSite::output},
                                      {"mlp.gate_proj", InputSite::mlp},          {"mlp.up_proj", InputSite::mlp},
                                      {"mlp.down_proj", InputSite::down}};

/// In fp32; refused where one of them is no number.
Result<DenseMatrix> widened(const TensorView& view, const std::string& name) {
  DenseMatrix out{view.shape[0], view.shape[1], {}};
  out.values.reserve(std::size_t(out.rows * out.columns));
  for (std::size_t at = 0; at < view.bytes.size(); at += bytes_of(view.dtype)) {
    float value = 0.0f;
    if (view.dtype == DType::f32) {
      std::memcpy(&value, view.bytes.data() + at, sizeof value);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, view.bytes.data() + at, sizeof half);
      value = std::bit_cast<float>(std::uint32_t(half) << 16);
    }
    if (!std::isfinite(value)) return make_error(ErrorCode::corrupt, name + ": a weight is no finite number; such a model cannot be merged");
    out.values.push_back(value);
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<const Pool>> Pool::make(std::vector<PoolModel> models, int threads) {
  std::unique_ptr<Pool> pool(new Pool);
  pool->models_ = std::move(models);
  for (std::uint32_t m = 0; m < pool->models_.size(); ++m) {
    if (auto added = pool->add_sites(m); !added) return added.error();
  }
  const auto see = [&](std::size_t m) -> Result<void> {
    const PoolModel& own = pool->models_[m];
    const auto ops = make_cpu_ops({.threads = 1});
    if (!ops) return ops.error();
    InputStatistics statistics(**ops, own.opened.config.layers);
    const auto lookup = [&](std::string_view name) { return own.opened.checkpoint.tensor(name); };
    const auto model = Model::create(own.opened.config, lookup, statistics);
    if (!model) return model.error();
    (void)Evaluator(**model).score(own.items.profile);
    for (Site& site : pool->sites_) {
      if (site.model != m) continue;
      site.gram = statistics.head();
      for (std::int64_t layer = 0; layer < own.opened.config.layers; ++layer) {
        for (const Projected& projected : kProjections) {
          if (site.slot == "model.layers." + std::to_string(layer) + "." + projected.name) site.gram = statistics.gram(layer, projected.input);
        }
      }
    }
    return {};
  };
  if (auto seen = in_parallel(pool->models_.size(), threads, see); !seen) return seen.error();
  pool->group_sites();
  pool->count_bytes();
  return std::unique_ptr<const Pool>(std::move(pool));
}

Result<void> Pool::add_sites(std::uint32_t m) {
  const PoolModel& own = models_[m];
  if (own.items.profile.empty() || own.items.gate.empty()) {
    return make_error(ErrorCode::invalid_input, own.model.text() + ": its task has too few items to judge it; give it more");
  }
  std::vector<std::string> slots{"model.embed_tokens"};
  if (!own.opened.config.tied_embeddings) slots.emplace_back("lm_head");
  for (std::int64_t layer = 0; layer < own.opened.config.layers; ++layer) {
    for (const Projected& projected : kProjections) slots.push_back("model.layers." + std::to_string(layer) + "." + projected.name);
  }
  for (std::string& slot : slots) {
    const auto view = own.opened.checkpoint.tensor(slot + ".weight");
    if (!view) return view.error();
    if (view->dtype != DType::bf16 && view->dtype != DType::f32) {
      return make_error(ErrorCode::invalid_input, own.model.text() + ": " + slot + " is stored in " + std::string(name_of(view->dtype)) +
                                                      "; models of BF16 or F32 can be merged");
    }
    auto weights = widened(*view, own.model.text() + ": " + slot);
    if (!weights) return weights.error();
    sites_.push_back({m, std::move(slot), view->dtype, std::move(*weights), {}});
  }
  return {};
}

void Pool::group_sites() {
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::size_t> known;
  for (SiteIndex i = 0; i < sites_.size(); ++i) {
    const Site& site = sites_[i];
    const auto [found, is_new] = known.try_emplace({site.slot, site.weights.rows, site.weights.columns}, groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[found->second].sites.push_back(i);
  }
}

void Pool::count_bytes() {
  std::set<std::string> slots;
  for (const Site& site : sites_) slots.insert(site.slot + ".weight");
  std::set<Digest> counted;
  for (const PoolModel& own : models_) {
    for (const auto& [name, view] : own.opened.checkpoint.tensors()) {
      const Bytes bytes(std::int64_t(view.bytes.size()));
      original_ += bytes;
      if (!slots.contains(name) && counted.insert(digest_of(view.bytes)).second) fixed_ += bytes;
    }
  }
}

}  // namespace sangam::merging
