// Paired counts: an item that was wrong before and is wrong now says nothing.
#include "actors/merger/pool/judge.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "actors/merger/pool/parallel.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"

namespace sangam::merging {
namespace {

constexpr std::size_t kItemsAtOnce = 100;
constexpr double kRefutedAlpha = 0.01;  // Of a verdict before the last item.

std::string text_of(const SlotForm& form) {
  const auto code = [](const std::optional<RowCode>& c) { return c ? std::string(suffix_of(*c)) : std::string("-"); };
  return std::to_string(form.group) + "/" + std::to_string(form.sharing) + "/" + code(form.code) + "/" + code(form.delta) + "/" +
         std::to_string(form.rank) + (form.affine ? "a;" : ";");
}

std::string in_points(double points) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f points", points);
  return text.data();
}

std::vector<bool> rights(std::span<const AnswerScore> scores) {
  std::vector<bool> out;
  for (const AnswerScore& score : scores) out.push_back(score.right);
  return out;
}

/// A gate that says nothing would accept nothing, or everything.
Result<void> check_gate(const PoolModel& model, const std::vector<bool>& before, double alpha) {
  const auto items = std::int64_t(before.size());
  const double at_best = drop_bound({.items = items}, alpha);
  if (at_best > model.budget) {
    return make_error(ErrorCode::invalid_input, model.model.text() + ": " + std::to_string(items) + " items for the gate show at best a drop of at most " +
                                                    in_points(at_best) + ", and its budget is " + in_points(model.budget) + "; give its task more items");
  }
  const double right = 100.0 * double(std::count(before.begin(), before.end(), true)) / double(items);
  if (right > model.budget) return {};
  return make_error(ErrorCode::invalid_input, model.model.text() + ": is right on " + in_points(right) +
                                                  " of its items as it is, no more than it may lose; is the task its own, and its prompts as it expects them?");
}

}  // namespace

Digest digest_of_model(const Pool& pool, std::uint32_t model, const PoolState& state) {
  std::string text = std::to_string(model) + ":";
  for (SiteIndex i = 0; i < state.size(); ++i) {
    if (pool.sites()[i].model == model) text += text_of(state[i]);
  }
  return digest_of(text);
}

Digest digest_of_state(const PoolState& state) {
  std::string text;
  for (const SlotForm& form : state) text += text_of(form);
  return digest_of(text);
}

Judge::Judge(Shelf& shelf, double alpha, int threads) : shelf_(shelf), alpha_(alpha), threads_(threads) {}

Result<void> Judge::prepare() {
  const auto& models = shelf_.pool().models();
  gate_before_.resize(models.size());
  const PoolState as_it_is(shelf_.pool().sites().size());
  return in_parallel(models.size(), threads_, [&](std::size_t m) -> Result<void> {
    const auto ops = make_cpu_ops({.threads = 1});
    if (!ops) return ops.error();
    const auto model = shelf_.model(std::uint32_t(m), as_it_is, **ops);
    if (!model) return model.error();
    gate_before_[m] = rights(Evaluator(**model).score(models[m].items.gate));
    return check_gate(models[m], gate_before_[m], alpha_);
  });
}

Result<PairedCounts> Judge::compare(std::uint32_t index, const PoolState& state, std::span<const AnswerKey> items,
                                    const std::vector<bool>& before, bool stops) {
  const auto ops = make_cpu_ops({.threads = 1});
  if (!ops) return ops.error();
  const auto model = shelf_.model(index, state, **ops);
  if (!model) return model.error();
  Evaluator evaluator(**model);
  SequentialDropTest test({shelf_.pool().models()[index].budget, kRefutedAlpha});
  PairedCounts counts;
  while (std::size_t(counts.items) < items.size()) {
    const auto first = std::size_t(counts.items);
    const auto scores = evaluator.score(items.subspan(first, std::min(items.size() - first, kItemsAtOnce)));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      counts.note(before[first + i], scores[i].right);
      if (stops) test.note(before[first + i], scores[i].right);
    }
    if (test.verdict() == DropVerdict::beyond) break;
  }
  return counts;
}

Result<Verdict> Judge::judge_model(std::uint32_t model, const PoolState& state) {
  const Digest key = digest_of_model(shelf_.pool(), model, state);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const PoolModel& own = shelf_.pool().models()[model];
  const auto counts = compare(model, state, own.items.gate, gate_before_[model], true);
  if (!counts) return counts.error();
  Verdict verdict{counts->items, counts->lost, counts->won, counts->drop(), false};
  // The bound costs time, and is of no use where the drop itself is beyond the budget or not all was looked at.
  if (verdict.bound <= own.budget && verdict.items == std::int64_t(own.items.gate.size())) {
    verdict.bound = drop_bound(*counts, alpha_);
    verdict.accepted = verdict.bound <= own.budget;
  }
  const std::lock_guard lock(mutex_);
  known_[key] = verdict;
  ++evaluations_;
  return verdict;
}

Result<std::vector<Verdict>> Judge::judge(const PoolState& state) {
  std::vector<Verdict> out(shelf_.pool().models().size());
  const auto done = in_parallel(out.size(), threads_, [&](std::size_t m) -> Result<void> {
    const auto verdict = judge_model(std::uint32_t(m), state);
    if (!verdict) return verdict.error();
    out[m] = *verdict;
    return {};
  });
  if (!done) return done.error();
  return out;
}

Result<std::vector<PairedCounts>> Judge::certify(const PoolState& state) {
  const auto& models = shelf_.pool().models();
  std::vector<PairedCounts> out(models.size());
  const PoolState as_it_is(state.size());
  const auto done = in_parallel(out.size(), threads_, [&](std::size_t m) -> Result<void> {
    const auto ops = make_cpu_ops({.threads = 1});
    if (!ops) return ops.error();
    const auto model = shelf_.model(std::uint32_t(m), as_it_is, **ops);
    if (!model) return model.error();
    const auto before = rights(Evaluator(**model).score(models[m].items.shadow));
    const auto counts = compare(std::uint32_t(m), state, models[m].items.shadow, before, false);
    if (!counts) return counts.error();
    out[m] = *counts;
    return {};
  });
  if (!done) return done.error();
  return out;
}

}  // namespace sangam::merging
