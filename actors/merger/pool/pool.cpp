// What a model uses of its checkpoint, and what it does with it.
#include "actors/merger/pool/pool.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "actors/merger/pool/parallel.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "messages/vocabulary/assert.hpp"
#include "storage/checkpoint/tensor_check.hpp"
#include "storage/hash/weights_digest.hpp"

namespace sangam::merging {
namespace {

struct Projected {
  std::string_view name;
  InputSite input;
};
constexpr Projected kProjections[] = {{"self_attn.q_proj", InputSite::attention}, {"self_attn.k_proj", InputSite::attention},
                                      {"self_attn.v_proj", InputSite::attention}, {"self_attn.o_proj", InputSite::output},
                                      {"mlp.gate_proj", InputSite::mlp},          {"mlp.up_proj", InputSite::mlp},
                                      {"mlp.down_proj", InputSite::down}};

constexpr std::string_view kWeight = ".weight";
constexpr const char* kTable = "model.embed_tokens";

/// Formats that a merge writes; what has them already was merged before.
bool is_part(const ExpectedTensor& tensor) { return tensor.dtype.has_value() || tensor.name.find(".low_rank.") != std::string::npos; }

/// All inputs alike, and none with another: rows of a table that are looked up see no input.
Gram even_gram(std::int64_t columns) {
  Gram gram{columns, std::vector<double>(std::size_t(columns * columns), 0.0)};
  for (std::int64_t k = 0; k < columns; ++k) gram.values[std::size_t(k * (columns + 1))] = 1.0;
  return gram;
}

/// What a projection of a layer sees; nothing where the slot is none.
const Gram* layer_gram(const InputStatistics& statistics, const std::string& slot) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!slot.starts_with(kLayers)) return nullptr;
  const auto dot = slot.find('.', kLayers.size());
  const std::string_view name = std::string_view(slot).substr(dot + 1);
  const auto projected = std::find_if(std::begin(kProjections), std::end(kProjections), [&](const Projected& p) { return p.name == name; });
  SANGAM_ASSERT(projected != std::end(kProjections), slot);
  return &statistics.gram(std::stoll(slot.substr(kLayers.size(), dot - kLayers.size())), projected->input);
}

}  // namespace

Result<std::unique_ptr<const Pool>> Pool::make(std::vector<PoolModel> models, int threads) {
  std::unique_ptr<Pool> pool(new Pool);
  pool->models_ = std::move(models);
  for (std::uint32_t m = 0; m < pool->models_.size(); ++m) {
    if (auto added = pool->add_tensors(m); !added) return added.error();
  }
  const auto see = [&](std::size_t m) { return pool->see_inputs(std::uint32_t(m)); };
  if (auto seen = in_parallel(pool->models_.size(), threads, see); !seen) return seen.error();
  pool->group_sites();
  pool->count_bytes();
  return std::unique_ptr<const Pool>(std::move(pool));
}

/// Every matrix that the model uses is a site; its norms and biases are carried along.
Result<void> Pool::add_tensors(std::uint32_t m) {
  const PoolModel& own = models_[m];
  const Checkpoint& checkpoint = own.opened.checkpoint;
  if (own.items.profile.empty() || own.items.gate.empty()) {
    return make_error(ErrorCode::invalid_input, own.model.text() + ": its task has too few items to judge it; give it more");
  }
  const auto expected = expected_tensors(own.opened.config, lookup_in(checkpoint));
  if (!expected) return expected.error();
  carried_.emplace_back();
  for (const ExpectedTensor& tensor : *expected) {
    const std::string place = own.model.text() + ": " + tensor.name;
    if (is_part(tensor)) return make_error(ErrorCode::invalid_input, place + ": is coded or corrected already; merge the models that it was made of");
    const auto view = checkpoint.tensor(tensor.name);
    if (!view) return view.error();
    DenseMatrix weights = dense_of(*view);
    if (!is_finite(weights)) return make_error(ErrorCode::corrupt, place + ": a weight is no finite number; such a model cannot be merged");
    if (view->shape.size() != 2) {
      carried_.back().push_back(tensor.name);
      continue;
    }
    const std::string slot = tensor.name.substr(0, tensor.name.size() - kWeight.size());
    sites_.push_back({m, slot, Bytes(std::int64_t(view->bytes.size())), std::move(weights), {}});
  }
  const auto config = digest_of_file(checkpoint.folder() / "config.json");
  if (!config) return config.error();
  contents_.push_back(digest_of(hex_of(weights_digest(checkpoint)) + hex_of(*config)));
  return {};
}

Result<void> Pool::see_inputs(std::uint32_t m) {
  const PoolModel& own = models_[m];
  const auto ops = make_cpu_ops({.threads = 1});
  if (!ops) return ops.error();
  InputStatistics statistics(**ops, own.opened.config.layers);
  const auto lookup = [&](std::string_view name) { return own.opened.checkpoint.tensor(name); };
  const auto model = Model::create(own.opened.config, lookup, statistics);
  if (!model) return model.error();
  (void)Evaluator(**model).score(own.items.profile);
  for (Site& site : sites_) {
    if (site.model != m) continue;
    const bool only_looked_up = site.slot == kTable && !own.opened.config.tied_embeddings;
    const Gram* seen = layer_gram(statistics, site.slot);
    site.gram = only_looked_up ? even_gram(site.weights.columns) : seen != nullptr ? *seen : statistics.head();
    if (std::all_of(site.gram.values.begin(), site.gram.values.end(), [](double x) { return std::isfinite(x); })) continue;
    return make_error(ErrorCode::corrupt, own.model.text() + ": " + site.slot + ": its inputs are no finite numbers on the profile's items");
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
  for (const Site& site : sites_) original_ += site.bytes;
  std::set<Digest> counted;
  for (std::uint32_t m = 0; m < models_.size(); ++m) {
    for (const std::string& name : carried_[m]) {
      const auto view = models_[m].opened.checkpoint.tensor(name).value();
      const Bytes bytes(std::int64_t(view.bytes.size()));
      original_ += bytes;
      if (counted.insert(digest_of(view.bytes)).second) fixed_ += bytes;
    }
  }
}

}  // namespace sangam::merging
