// Terms, places of bytes, and the pages that wait for another engine.
#include "gpu/engine/kv_hand_over.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

std::string described(const KvTerms& terms) {
  const KvLayout& layout = terms.layout;
  return "'" + terms.kv_name + "' page bytes=" + std::to_string(terms.page_bytes) +
         " tokens per page=" + std::to_string(layout.tokens_per_page) +
         " layers=" + std::to_string(layout.layers) + " kv heads=" + std::to_string(layout.kv_heads) +
         " head dim=" + std::to_string(layout.head_dim);
}

}  // namespace

Result<void> check_terms(const KvTerms& ours, const KvTerms& theirs) {
  const KvLayout& a = ours.layout;
  const KvLayout& b = theirs.layout;
  const bool equal = ours.page_bytes == theirs.page_bytes && a.layers == b.layers &&
                     a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
                     a.tokens_per_page == b.tokens_per_page;
  if (equal && !ours.kv_name.empty() && ours.kv_name == theirs.kv_name) return {};
  return make_error(ErrorCode::invalid_input,
                    "KV cannot be handed over: here " + described(ours) + ", there " + described(theirs) +
                        "; let both workers serve the same weights with pages of one size");
}

std::vector<KvPiece> kv_pieces(const KvLayout& layout, std::int64_t layer, std::int64_t first,
                               std::int64_t count) {
  const auto token_bytes = std::size_t(layout.head_dim) * sizeof(std::uint16_t);
  std::vector<KvPiece> pieces;
  for (const std::int64_t last = first + count; first < last;) {
    const std::int64_t inside = first % layout.tokens_per_page;
    const std::int64_t tokens = std::min(layout.tokens_per_page - inside, last - first);
    for (std::int64_t head = 0; head < layout.kv_heads; ++head) {
      for (const std::int64_t elements : {layout.key_offset(layer, head), layout.value_offset(layer, head)}) {
        pieces.push_back({std::size_t(first / layout.tokens_per_page),
                          std::size_t(elements) * sizeof(std::uint16_t) + std::size_t(inside) * token_bytes,
                          std::size_t(tokens) * token_bytes});
      }
    }
    first += tokens;
  }
  return pieces;
}

KvHandOvers::~KvHandOvers() {
  for (auto& [request, outgoing] : outgoing_) pages_.let_go(outgoing.kv);
  for (auto& [request, lent] : lent_) pages_.let_go(lent.kv);
}

void KvHandOvers::keep(RequestId request, const ModelId& model, KvHold kv, std::vector<TokenId> computed) {
  const bool is_new =
      outgoing_.try_emplace(request, Outgoing{model, std::move(kv), std::move(computed)}).second;
  SANGAM_ASSERT(is_new, "handed over twice", request);
}

bool KvHandOvers::handed_over(RequestId request) {
  const auto found = outgoing_.find(request);
  if (found == outgoing_.end()) return false;
  pages_.publish(found->second.kv, found->second.computed);
  pages_.let_go(found->second.kv);
  outgoing_.erase(found);
  return true;
}

std::span<const PageId> KvHandOvers::lend(const KvWish& wish, std::int64_t count) {
  Lent& lent = lent_[wish.request];
  SANGAM_ASSERT(lent.kv.pages.empty(), "lent twice", wish.request);
  lent = {wish.model, pages_.hold(wish.model)};
  pages_.take(lent.kv, count);
  return lent.kv.pages;
}

const KvHold* KvHandOvers::find_lent(RequestId request, const ModelId& model) const {
  const auto found = lent_.find(request);
  return found == lent_.end() || found->second.model != model ? nullptr : &found->second.kv;
}

KvHold KvHandOvers::claim(RequestId request) {
  const auto found = lent_.find(request);
  SANGAM_ASSERT(found != lent_.end(), request);
  KvHold kv = std::move(found->second.kv);
  lent_.erase(found);
  return kv;
}

bool KvHandOvers::cancel(RequestId request) {
  if (const auto found = outgoing_.find(request); found != outgoing_.end()) {
    pages_.let_go(found->second.kv);
    outgoing_.erase(found);
    return true;
  }
  if (!lent_.contains(request)) return false;
  KvHold kv = claim(request);
  pages_.let_go(kv);
  return true;
}

Pages KvHandOvers::held(const ModelId& model) const {
  std::int64_t pages = 0;
  for (const auto& [request, outgoing] : outgoing_)
    if (outgoing.model == model) pages += std::int64_t(outgoing.kv.pages.size());
  for (const auto& [request, lent] : lent_)
    if (lent.model == model) pages += std::int64_t(lent.kv.pages.size());
  return Pages(pages);
}

}  // namespace sangam
