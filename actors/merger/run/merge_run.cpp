// Survey, search, certificate. The search decides; this asks the judge, or the trajectory where it knows.
#include "actors/merger/run/merge_run.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "storage/hash/weights_digest.hpp"

namespace sangam::merging {
namespace {

TrialPoint point_of(const PoolOptions& options, const std::string& phase, const PoolState& state, std::span<const Verdict> verdicts) {
  TrialPoint point{phase, bytes_of(options, state), 0.0, -100.0, true};
  for (const Verdict& v : verdicts) {
    point.drop_mean += v.drop() / double(verdicts.size());
    point.drop_worst = std::max(point.drop_worst, v.drop());
    point.accepted = point.accepted && v.accepted;
  }
  return point;
}

/// By content, over all models: what is equal is there once.
Result<Bytes> served_bytes(Shelf& shelf, const PoolState& state) {
  std::set<Digest> counted;
  Bytes bytes{};
  for (std::uint32_t m = 0; m < shelf.pool().models().size(); ++m) {
    const auto tensors = shelf.tensors(m, state);
    if (!tensors) return tensors.error();
    for (const auto& [name, view] : *tensors) {
      if (counted.insert(digest_of(view.bytes)).second) bytes += Bytes(std::int64_t(view.bytes.size()));
    }
  }
  return bytes;
}

/// A text that no other values have.
class Chain {
 public:
  void add(std::string_view text) { text_ += std::to_string(text.size()) + ":" + std::string(text); }
  void add(double value) {
    std::array<char, 40> exact{};
    std::snprintf(exact.data(), exact.size(), "%a", value);
    add(std::string_view(exact.data()));
  }
  void add(const std::optional<RowCode>& code) { add(code ? suffix_of(*code) : std::string_view("-")); }
  void add(std::span<const AnswerKey> keys) {
    for (const AnswerKey& key : keys) {
      for (const auto* tokens : {&key.prompt, &key.answer}) add(hex_of(digest_of(std::as_bytes(std::span(*tokens)))));
    }
  }
  [[nodiscard]] Digest digest() const { return digest_of(text_); }

 private:
  std::string text_;
};

}  // namespace

Digest digest_of_run(const Pool& pool, const MergeOptions& options, const Checkpoint* ancestor) {
  Chain chain;
  chain.add(ancestor != nullptr ? hex_of(weights_digest(*ancestor)) : "none");
  for (std::uint32_t m = 0; m < pool.models().size(); ++m) {
    const PoolModel& model = pool.models()[m];
    chain.add(model.model.text());
    chain.add(hex_of(pool.content(m)));
    chain.add(model.budget);
    for (const auto* items : {&model.items.profile, &model.items.gate, &model.items.shadow}) {
      chain.add(double(items->size()));
      chain.add(*items);
    }
  }
  const FormMenu& menu = options.menu;
  for (const std::size_t count : {menu.own.size(), menu.canonicals.size(), menu.corrections.size()}) chain.add(double(count));
  for (const RowCode code : menu.own) chain.add(std::optional(code));
  for (const auto& code : menu.canonicals) chain.add(code);
  for (const Correction& c : menu.corrections) {
    chain.add(c.delta);
    chain.add(double(c.rank * 2 + int(c.affine)));
  }
  const PriceSearchOptions& search = options.search;
  for (const double value :
       {double(menu.subsets), double(options.merging.op), options.merging.damping, options.merging.lambda, options.merging.density,
        search.price_least, search.price_most, double(search.rounds), double(search.mends_max), double(search.regroupings_max),
        double(search.refinements_max), double(search.batch), options.alpha}) {
    chain.add(value);
  }
  return chain.digest();
}

Result<MergeOutcome> merge(Shelf& shelf, const MergeOptions& options, Trajectory& trajectory, const MergeWatcher& watcher) {
  const auto surveyed = survey(shelf, options.menu, options.threads, watcher.progress);
  if (!surveyed) return surveyed.error();
  Judge judge(shelf, options.alpha, options.threads);
  if (auto prepared = judge.prepare(); !prepared) return prepared.error();
  PriceSearch search(*surveyed, options.search);
  MergeOutcome out;
  out.original = surveyed->original;
  for (std::size_t trial = 0;; ++trial) {
    const std::string phase = search.phase();
    const auto state = search.next();
    if (!state) break;
    const Digest digest = digest_of_state(*state);
    auto known = trajectory.recall(trial, digest);
    if (!known) return known.error();
    if (!*known) {
      auto judged = judge.judge(*state);
      if (!judged) return judged.error();
      if (auto kept = trajectory.append(digest, *judged); !kept) return kept.error();
      *known = std::move(*judged);
    }
    out.trials.push_back(point_of(*surveyed, phase, *state, **known));
    search.hear(**known);
    if (watcher.trial) watcher.trial(out.trials.back(), trial, bytes_of(*surveyed, search.best()));
  }
  out.state = search.best();
  auto gate = judge.judge(out.state);
  if (!gate) return gate.error();
  out.gate = std::move(*gate);
  const auto shadow = judge.certify(out.state);
  if (!shadow) return shadow.error();
  for (std::size_t m = 0; m < shadow->size(); ++m) {
    const double bound = drop_bound((*shadow)[m], options.certificate_alpha);
    out.certificates.push_back({(*shadow)[m], bound, bound <= shelf.pool().models()[m].budget});
  }
  const auto bytes = served_bytes(shelf, out.state);
  if (!bytes) return bytes.error();
  out.bytes = *bytes;
  out.evaluations = judge.evaluations();
  out.trajectory = trajectory.head();
  return out;
}

}  // namespace sangam::merging
