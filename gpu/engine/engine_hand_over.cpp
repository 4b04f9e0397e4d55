// The engine's part in requests that two engines share.
#include <string>
#include <utility>

#include "gpu/engine/engine.hpp"

namespace sangam {
namespace {

std::string named(RequestId request, const ModelId& model) {
  return "hand-over of request " + std::to_string(std::uint64_t(request)) + " of model " + model.text();
}

}  // namespace

Result<void> Engine::add_prefill(Run run, KvSink& sink) {
  auto sequence = sequence_of(std::move(run));
  if (!sequence) return sequence.error();
  sequence->sink = &sink;
  accept(std::move(*sequence));
  return {};
}

bool Engine::handed_over(RequestId request) {
  const bool held = hand_overs_.handed_over(request);
  settle();
  return held;
}

Result<KvTerms> Engine::kv_terms(const ModelId& name) const {
  const auto served = models_.find(name);
  if (served == models_.end())
    return make_error(ErrorCode::not_found, "model " + name.text() + " is not loaded");
  const LoadedModel& loaded = served->second.loaded;
  const std::size_t page_bytes = pool_.arena().page_bytes;
  return KvTerms{loaded.kv_name, page_bytes, kv_layout(*loaded.model, page_bytes)};
}

Result<std::span<const PageId>> Engine::reserve_kv(const KvWish& wish) {
  auto terms = kv_terms(wish.model);
  if (!terms) return terms.error();
  if (auto checked = check_terms(*terms, wish.terms); !checked) return checked.error();
  const std::int64_t per_page = terms->layout.tokens_per_page;
  const std::int64_t needed = (wish.tokens.count() + per_page - 1) / per_page;
  if (roster_.contains(wish.request) || hand_overs_.contains(wish.request)) {
    return make_error(ErrorCode::invalid_input,
                      named(wish.request, wish.model) + ": it is live here already; cancel it first");
  }
  const std::int64_t context = models_.at(wish.model).loaded.model->config().context;
  const std::int64_t capacity = kv_capacity(wish.model).count();
  if (wish.tokens < Tokens{1} || wish.tokens.count() > std::min(context, capacity)) {
    return make_error(ErrorCode::context_length,
                      named(wish.request, wish.model) + ": tokens=" + std::to_string(wish.tokens.count()) +
                          " must be from 1 to the least of context=" + std::to_string(context) +
                          " and KV capacity=" + std::to_string(capacity));
  }
  if (!roster_.could_expect(needed)) {
    return make_error(ErrorCode::exhausted,
                      named(wish.request, wish.model) + ": KV pages needed=" + std::to_string(needed) +
                          ", available=" + std::to_string(kv_.available().count()) +
                          ", or no place of running_max=" + std::to_string(options_.running_max) +
                          " is free; ask again later or another worker");
  }
  const auto pages = hand_overs_.lend(wish, needed);
  settle();
  return pages;
}

Result<void> Engine::add_prefilled(Run run) {
  const KvHold* lent = hand_overs_.find_lent(run.request, run.model);
  if (lent == nullptr) {
    return make_error(
        ErrorCode::not_found,
        named(run.request, run.model) + ": no pages are reserved; reserve them first");
  }
  const std::int64_t pages = std::int64_t(lent->pages.size());
  auto sequence = sequence_of(std::move(run));
  if (!sequence) return sequence.error();
  const std::int64_t written = sequence->length() - 1;
  if (sequence->pages_for(written) > pages) {
    return make_error(
        ErrorCode::invalid_input,
        named(sequence->run.request, sequence->run.model) + ": tokens=" + std::to_string(written) +
            " do not fit into the reserved pages=" + std::to_string(pages) + "; reserve for all of them");
  }
  KvHold kv = hand_overs_.claim(sequence->run.request);
  settle();
  if (sequence->length() < sequence->length_max) {
    sequence->kv = std::move(kv);
    sequence->computed = written;
    sequence->running = sequence->admitted = sequence->prefilled = true;
    kv_.enroll(sequence->kv, sequence->realm);
    kv_.publish(sequence->kv, sequence->shareable());
  } else {
    kv_.let_go(kv);
  }
  accept(std::move(*sequence));
  return {};
}

void Engine::settle() {
  roster_.keep_free(hand_overs_.expected());
  stalled_ = false;
}

}  // namespace sangam
