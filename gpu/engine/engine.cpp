// The engine's step: admit, choose a model, plan its rows, compute, take the next tokens.
#include "gpu/engine/engine.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

std::string quoted(const ModelId& name) {
  return "model " + name.text();
}

TokensProduced part_of(const Sequence& sequence) {
  TokensProduced produced;
  produced.request = sequence.run.request;
  produced.attempt = sequence.run.attempt;
  produced.first = std::uint64_t(sequence.length() - sequence.prompt_length);
  produced.cached = Tokens(sequence.cached);
  return produced;
}

TokensProduced failure(const Sequence& sequence, Error error) {
  TokensProduced produced = part_of(sequence);
  produced.finish = FinishReason::failed;
  produced.code = error.code;
  produced.why = std::move(error.context);
  return produced;
}

Result<void> check_tokens(const Run& run, std::int64_t vocab_size) {
  if (run.prompt.empty())
    return make_error(ErrorCode::invalid_input,
                      quoted(run.model) + ": the prompt has no token; send at least one");
  for (const auto* tokens : {&run.prompt, &run.generated}) {
    const auto largest = std::max_element(tokens->begin(), tokens->end());
    if (largest == tokens->end() || std::int64_t(*largest) < vocab_size) continue;
    return make_error(ErrorCode::invalid_input, quoted(run.model) + ": token " + std::to_string(*largest) +
                                                    " is not below the vocabulary's size " +
                                                    std::to_string(vocab_size));
  }
  return {};
}

}  // namespace

Engine::Engine(EngineOptions options, PagePool& pool, PrefixCache::Hash hash)
    : options_(options),
      pool_(pool),
      kv_(pool, std::move(hash)),
      hand_overs_(kv_),
      roster_(kv_, options.running_max),
      turns_(options.shared_step_max) {
  SANGAM_ASSERT(options.step_tokens.count() >= 1, options.step_tokens);
}

Result<void> Engine::load(const ModelId& name, LoadedModel loaded) {
  if (models_.contains(name))
    return make_error(ErrorCode::invalid_input, quoted(name) + " is loaded already; unload it first");
  const std::size_t page_bytes = pool_.arena().page_bytes;
  if (loaded.model->tokens_per_page(page_bytes) < 1) {
    return make_error(ErrorCode::invalid_input,
                      quoted(name) +
                          ": KV bytes of one token=" + std::to_string(loaded.model->kv_bytes_per_token()) +
                          " do not fit into a page of " + std::to_string(page_bytes) + "; make pages larger");
  }
  if (kv_.total() < Pages{1}) {
    return make_error(ErrorCode::exhausted, quoted(name) + ": weights have left no page of the pool's " +
                                                std::to_string(pool_.pages().total().count()) +
                                                " for KV; make the pool larger or serve fewer models");
  }
  models_.emplace(name, Served{std::move(loaded), 0});
  kv_.serve(name);
  return {};
}

Result<void> Engine::unload(const ModelId& name) {
  if (!models_.contains(name)) return make_error(ErrorCode::not_found, quoted(name) + " is not loaded");
  const RosterCount count = roster_.count(name);
  const Pages handing_over = hand_overs_.held(name);
  if (count.running + count.waiting > 0 || handing_over > Pages{0}) {
    return make_error(ErrorCode::unavailable,
                      quoted(name) + " has live requests: running=" + std::to_string(count.running) +
                          " waiting=" + std::to_string(count.waiting) + ", pages in hand-over=" +
                          std::to_string(handing_over.count()) + "; cancel or await them first");
  }
  models_.erase(name);
  kv_.forget(name);
  turns_.forget(name);
  return {};
}

Result<void> Engine::add(Run run) {
  auto sequence = sequence_of(std::move(run));
  if (!sequence) return sequence.error();
  accept(std::move(*sequence));
  return {};
}

void Engine::accept(Sequence sequence) {
  stalled_ = false;
  if (sequence.length() < sequence.length_max) return roster_.add(std::move(sequence));
  completed_.push_back(part_of(sequence));
  completed_.back().finish = FinishReason::length;
}

Result<Sequence> Engine::sequence_of(Run run) {
  const auto served = models_.find(run.model);
  if (served == models_.end()) return make_error(ErrorCode::not_found, quoted(run.model) + " is not loaded");
  const Model& model = *served->second.loaded.model;
  if (auto checked = check_tokens(run, model.config().vocab_size); !checked) return checked.error();
  if (auto checked = check_sampling(run.sampling, model.config().vocab_size); !checked)
    return checked.error();

  const auto prompt_length = std::int64_t(run.prompt.size());
  const std::int64_t capacity = kv_capacity(run.model).count();
  const std::int64_t room = std::min(model.config().context, capacity) - prompt_length;
  if (room < 1) {
    return make_error(ErrorCode::context_length,
                      quoted(run.model) + ": prompt tokens=" + std::to_string(prompt_length) +
                          " leave no room for output: context=" + std::to_string(model.config().context) +
                          ", KV capacity=" + std::to_string(capacity) + "; shorten the prompt");
  }
  Sequence sequence(std::move(run));
  sequence.length_max = prompt_length + std::min(sequence.run.sampling.max_tokens.count(), room);
  sequence.realm = realm_of(sequence.run, served->second.loaded);
  sequence.kv = kv_.hold(sequence.run.model);
  return sequence;
}

PrefixRealm Engine::realm_of(const Run& run, const LoadedModel& loaded) const {
  PrefixRealm realm;
  realm.tokens_per_page = loaded.model->tokens_per_page(pool_.arena().page_bytes);
  if (options_.prefix_sharing != PrefixSharing::nobody) realm.model = loaded.kv_name;
  if (options_.prefix_sharing == PrefixSharing::tenant) realm.salt = run.tenant.text();
  return realm;
}

bool Engine::cancel(RequestId request) {
  const auto told_later = [request](const TokensProduced& produced) { return produced.request == request; };
  const bool live = roster_.remove(request) || std::erase_if(completed_, told_later) > 0;
  const bool held = hand_overs_.cancel(request);
  settle();
  return live || held;
}

StepReport Engine::step() {
  StepReport report;
  report.produced = std::exchange(completed_, {});
  admit(report);
  last_rows_ = 0;
  const std::vector<ModelId> models = ready();
  stalled_ = models.empty();
  if (models.empty()) return report;
  const ModelId name = turns_.next(models);
  const std::int64_t most = options_.step_tokens.count();
  const std::vector<Part> parts = plan(name, models.size() == 1 ? most : turns_.rows_max(name, most));
  if (parts.empty()) return report;  // all of it was preempted by others
  Served& served = models_.at(name);
  compute(served, parts);

  const auto vocab_size = std::size_t(served.loaded.model->config().vocab_size);
  std::span<float> logits(logits_);
  for (const Part& part : parts) {
    advance(part, logits.first(part.wants_logits ? vocab_size : 0), report);
    if (part.wants_logits) logits = logits.subspan(vocab_size);
  }
  kv_.tend();
  return report;
}

void Engine::admit(StepReport& report) {
  for (roster_.admit(); const Sequence* sequence = roster_.hopeless(); roster_.admit()) {
    report.produced.push_back(failure(
        *sequence,
        make_error(ErrorCode::exhausted, quoted(sequence->run.model) + ": KV pages needed=" +
                                             std::to_string(sequence->pages_for(sequence->length())) +
                                             ", left by weights=" + std::to_string(kv_.total().count()) +
                                             "; send it to another worker or make the pool larger")));
    roster_.remove(sequence->run.request);
  }
}

std::vector<ModelId> Engine::ready() const {
  std::vector<ModelId> ready;
  for (const auto& [name, served] : models_) {
    if (roster_.runs(name)) ready.push_back(name);
  }
  return ready;
}

/// Decodes first, then up to `rows_max` rows in all with prompts, each in the order of rank. Only a decode
/// may need another page; it takes it from one that ranks after it, and that one is not yet in the plan.
std::vector<Engine::Part> Engine::plan(const ModelId& name, std::int64_t rows_max) {
  std::vector<Part> parts;
  std::int64_t rows_left = options_.step_tokens.count();
  const std::vector<Sequence*> sequences = roster_.running(name);
  for (Sequence* sequence : sequences) {
    if (rows_left == 0 || !sequence->running || sequence->missing() != 1) continue;
    if (!roster_.grow(*sequence, sequence->length())) continue;
    parts.push_back({sequence, 1, true});
    --rows_left;
  }
  rows_left = std::min(rows_left, std::max<std::int64_t>(rows_max - std::int64_t(parts.size()), 1));
  for (Sequence* sequence : sequences) {
    if (rows_left == 0 || !sequence->running || sequence->missing() == 1) continue;
    const std::int64_t rows = std::min(rows_left, sequence->missing());
    parts.push_back({sequence, rows, rows == sequence->missing()});
    rows_left -= rows;
  }
  return parts;
}

void Engine::compute(Served& served, const std::vector<Part>& parts) {
  std::vector<SequenceSlice> slices;
  std::size_t with_logits = 0;
  for (const auto& [sequence, rows, wants_logits] : parts) {
    slices.push_back({std::span(sequence->tokens).subspan(std::size_t(sequence->computed), std::size_t(rows)),
                      sequence->computed, sequence->kv.pages, wants_logits});
    with_logits += wants_logits ? 1 : 0;
    last_rows_ += rows;
  }
  const std::size_t size = with_logits * std::size_t(served.loaded.model->config().vocab_size);
  if (logits_.size() < size) logits_.resize(size);
  served.loaded.model->forward(slices, pool_.arena(), std::span(logits_).first(size), teller(parts));
  ++served.steps;
}

/// Nothing where nobody listens.
LayerDone Engine::teller(const std::vector<Part>& parts) {
  const auto listens = [](const Part& part) { return part.sequence->sink != nullptr; };
  if (std::none_of(parts.begin(), parts.end(), listens)) return {};
  return [&parts](std::int64_t layer) {
    for (const Part& part : parts) {
      const Sequence& sequence = *part.sequence;
      if (sequence.sink == nullptr) continue;
      const std::int64_t count = sequence.computed + part.rows - sequence.told;
      sequence.sink->layer_done({sequence.run.request, layer, sequence.told, count, sequence.kv.pages});
    }
  };
}

void Engine::advance(const Part& part, std::span<float> logits, StepReport& report) {
  Sequence& sequence = *part.sequence;
  sequence.computed += part.rows;
  if (!sequence.prefilled) {
    sequence.prefilled = part.wants_logits;
    report.prefills.push_back({sequence.run.request, Tokens(part.rows), part.wants_logits});
  }
  sequence.told = sequence.computed;
  if (part.wants_logits) report.produced.push_back(next_token(sequence, logits));
  const FinishReason finish = part.wants_logits ? report.produced.back().finish : FinishReason::none;
  if (finish != FinishReason::failed && sequence.sink == nullptr)
    kv_.publish(sequence.kv, std::span(sequence.tokens).first(std::size_t(sequence.computed)));
  if (finish != FinishReason::none || (sequence.sink != nullptr && part.wants_logits)) end(sequence, finish);
}

/// A prompt for another engine leaves its pages as they are: they may be on their way.
void Engine::end(Sequence& sequence, FinishReason finish) {
  if (sequence.sink == nullptr) {
    (void)roster_.remove(sequence.run.request);
    return;
  }
  Sequence gone = roster_.take(sequence.run.request);
  gone.tokens.resize(finish == FinishReason::failed ? 0 : std::size_t(gone.computed));
  hand_overs_.keep(gone.run.request, gone.run.model, std::move(gone.kv), std::move(gone.tokens));
}

TokensProduced Engine::next_token(Sequence& sequence, std::span<float> logits) {
  auto choice = choose(logits, sequence.run.sampling, sequence.history);
  if (!choice) return failure(sequence, choice.error());
  TokensProduced produced = part_of(sequence);
  if (choice->stops) {
    produced.finish = FinishReason::stop;
    return produced;
  }
  sequence.tokens.push_back(choice->token);
  sequence.history.add(choice->token);
  produced.tokens = {choice->token};
  if (choice->logprobs) produced.logprobs.push_back(std::move(*choice->logprobs));
  if (sequence.length() == sequence.length_max) produced.finish = FinishReason::length;
  return produced;
}

Tokens Engine::kv_capacity(const ModelId& name) const {
  const auto served = models_.find(name);
  if (served == models_.end()) return Tokens{0};
  return Tokens(kv_.total().count() * served->second.loaded.model->tokens_per_page(pool_.arena().page_bytes));
}

EngineStats Engine::stats(const ModelId& name) const {
  EngineStats stats;
  stats.count = roster_.count(name);
  stats.handing_over = hand_overs_.held(name);
  const auto served = models_.find(name);
  if (served == models_.end()) return stats;
  stats.steps = served->second.steps;
  stats.kept = kv_.kept(served->second.loaded.kv_name);
  return stats;
}

}  // namespace sangam
