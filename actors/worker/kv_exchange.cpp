// What a place of keys and values says, and the copy that is made from it.
#include "actors/worker/kv_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "messages/vocabulary/assert.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {
namespace {

std::string digest_of_pages(const PageArena& arena, std::span<const PageId> pages) {
  std::vector<Digest> digests;
  for (const PageId page : pages) digests.push_back(digest_of(std::span(arena.at(page), arena.page_bytes)));
  return hex_of(digest_of(std::as_bytes(std::span(digests))));
}

/// The last token's are computed by whoever goes on.
std::int64_t tokens_written(const Run& run) {
  return std::int64_t(run.prompt.size() + run.generated.size()) - 1;
}

KvTerms terms_of(const KvPlace& place) {
  return {place.kv_name,
          std::size_t(place.page.count()),
          {place.layers, place.kv_heads, place.head_dim, place.tokens_per_page}};
}

std::string named(const HandOver& offered) {
  return "keys and values of request " + std::to_string(std::uint64_t(offered.run.request)) + " on " +
         offered.from.text();
}

}  // namespace

Result<void> KvExchange::add(const Run& run) {
  auto added = engine_.add_prefill(run, *this);
  if (added) outgoing_[run.request];
  return added;
}

/// All layers of a page lie together, so the pages are all there is to note.
void KvExchange::layer_done(const KvPart& part) {
  if (part.layer == 0) outgoing_.at(part.request).assign(part.pages.begin(), part.pages.end());
}

Result<KvPlace> KvExchange::place(const Run& run) const {
  const auto terms = engine_.kv_terms(run.model);
  if (!terms) return terms.error();
  const KvLayout& layout = terms->layout;
  const auto written = std::size_t((tokens_written(run) + layout.tokens_per_page - 1) / layout.tokens_per_page);
  const std::vector<PageId>& held = outgoing_.at(run.request);
  SANGAM_ASSERT(written <= held.size(), run.request, written, held.size());
  const std::span<const PageId> pages = std::span(held).first(written);
  KvPlace place{.kv_name = terms->kv_name,
                .isa = isa_,
                .page = Bytes(std::int64_t(terms->page_bytes)),
                .layers = layout.layers,
                .kv_heads = layout.kv_heads,
                .head_dim = layout.head_dim,
                .tokens_per_page = layout.tokens_per_page,
                .pages = {},
                .digest = digest_of_pages(pool_.arena(), pages)};
  for (const PageId page : pages) place.pages.push_back(std::uint32_t(page));
  return place;
}

Result<std::shared_ptr<const PeerPool>> KvExchange::peer(const ActorName& worker, Incarnation incarnation) {
  Peer& peer = peers_[worker];
  if (peer.pool && peer.incarnation == incarnation) return peer.pool;
  auto opened = PeerPool::open(options_.holder, worker.text(), options_.page_bytes);
  if (!opened) return opened.error();
  peer = {incarnation, std::move(*opened)};
  return peer.pool;
}

Result<void> KvExchange::take_over(const HandOver& offered) {
  const Run& run = offered.run;
  if (offered.kv.isa != isa_) {
    return make_error(ErrorCode::invalid_input, named(offered) + " were computed with " + offered.kv.isa +
                                                    ", here it is " + isa_ + "; give both workers one isa");
  }
  const auto from = peer(offered.from, offered.incarnation);
  if (!from) return from.error();
  // They do not expire: before this ends they are used or given back.
  const auto pages = engine_.reserve_kv(
      {run.request, run.model, Tokens(tokens_written(run)), terms_of(offered.kv), Instant::max()});
  if (!pages) return pages.error();
  auto taken = copy(offered, **from, *pages);
  if (taken) taken = engine_.add_prefilled(run);
  if (!taken) (void)engine_.cancel(run.request);
  return taken;
}

Result<void> KvExchange::copy(const HandOver& offered, const PeerPool& from, std::span<const PageId> to) const {
  const std::vector<std::uint32_t>& pages = offered.kv.pages;
  const auto beyond = [&](std::uint32_t page) { return std::int64_t(page) >= from.pages().count(); };
  if (pages.size() != to.size() || std::any_of(pages.begin(), pages.end(), beyond)) {
    return make_error(ErrorCode::corrupt, named(offered) + ": pages=" + std::to_string(pages.size()) + ", needed=" +
                                              std::to_string(to.size()) + ", of a pool with pages=" +
                                              std::to_string(from.pages().count()));
  }
  const PageArena& here = pool_.arena();
  for (std::size_t i = 0; i < to.size(); ++i)
    std::memcpy(here.at(to[i]), from.arena().at(PageId(pages[i])), here.page_bytes);
  if (digest_of_pages(here, to) == offered.kv.digest) return {};
  return make_error(ErrorCode::corrupt, named(offered) + " are not what their digest says; compute them anew");
}

}  // namespace sangam
