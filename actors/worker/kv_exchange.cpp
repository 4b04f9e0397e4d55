// What a place of keys and values says, and the copies that are made from it.
#include "actors/worker/kv_exchange.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/device/parallel.hpp"
#include "messages/vocabulary/assert.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {
namespace {

constexpr std::int64_t kBytesPerThread = std::int64_t{1} << 20;  // Below that a thread costs more than it saves.
constexpr std::int64_t kHashThreads = 8;

KvLayout layout_of(const KvPlace& place) {
  return {place.layers, place.kv_heads, place.head_dim, place.tokens_per_page};
}

KvTerms terms_of(const KvPlace& place) {
  return {place.kv_name, std::size_t(place.page.count()), layout_of(place)};
}

/// Of the positions only: what else there is in a page means nothing.
std::string digest_of_kv(const PageArena& arena, const KvLayout& layout, std::span<const PageId> pages,
                         std::int64_t tokens) {
  std::vector<Digest> digests(pages.size());
  const auto hash = [&](std::size_t page) {
    const std::int64_t inside = std::min(layout.tokens_per_page, tokens - std::int64_t(page) * layout.tokens_per_page);
    DigestStream stream;
    for (std::int64_t layer = 0; layer < layout.layers; ++layer) {
      for (const KvPiece& piece : kv_pieces(layout, layer, 0, inside))
        stream.update({arena.at(pages[page]) + piece.offset, piece.bytes});
    }
    digests[page] = stream.digest();
  };
  const std::int64_t bytes = tokens * std::int64_t(layout.bytes_per_token());
  for_each_index(pages.size(), std::size_t(std::clamp<std::int64_t>(bytes / kBytesPerThread, 1, kHashThreads)), hash);
  return hex_of(digest_of(std::as_bytes(std::span(digests))));
}

/// The last token's are computed by whoever goes on.
std::int64_t tokens_written(const Run& run) {
  return std::int64_t(run.prompt.size() + run.generated.size()) - 1;
}

std::string named(const ReserveKv& wish) {
  return "keys and values of request " + std::to_string(std::uint64_t(wish.request)) + " on " + wish.from.text();
}

/// What the taker would have been asked for before.
ReserveKv wish_of(const HandOver& offered) {
  ReserveKv wish;
  wish.request = offered.run.request;
  wish.attempt = offered.run.attempt;
  wish.model = offered.run.model;
  wish.tokens = Tokens(tokens_written(offered.run));
  wish.from = offered.from;
  wish.incarnation = offered.incarnation;
  wish.kv = offered.kv;
  return wish;
}

bool same_source(const ReserveKv& a, const ReserveKv& b) {
  return a.attempt == b.attempt && a.model == b.model && a.tokens == b.tokens && a.from == b.from &&
         a.incarnation == b.incarnation && a.kv.pages == b.kv.pages;
}

/// All of it lies in the pool that it speaks of, and as many pages as are needed.
Result<void> check_place(const ReserveKv& wish, const PeerPool& from, std::size_t needed) {
  const std::int64_t pages = from.pages().count();
  const auto beyond = [&](std::uint32_t page) { return std::int64_t(page) >= pages; };
  const std::int64_t word = wish.progress_offset.count();
  const bool has_word = !beyond(wish.progress_page) && word >= 0 && word % std::int64_t(sizeof(std::uint64_t)) == 0 &&
                        word + std::int64_t(sizeof(std::uint64_t)) <= wish.kv.page.count();
  if (wish.kv.pages.size() == needed && std::none_of(wish.kv.pages.begin(), wish.kv.pages.end(), beyond) && has_word)
    return {};
  return make_error(ErrorCode::corrupt, named(wish) + ": pages=" + std::to_string(wish.kv.pages.size()) +
                                            ", needed=" + std::to_string(needed) + ", of a pool with pages=" +
                                            std::to_string(pages) + "; progress at page " +
                                            std::to_string(wish.progress_page) + ", byte " + std::to_string(word));
}

}  // namespace

Result<void> KvExchange::add(const Run& run) {
  auto added = engine_.add_prefill(run, *this);
  if (added) outgoing_[run.request] = {run.model, tokens_written(run) + 1, {}, {}};
  return added;
}

void KvExchange::begins(RequestId request, std::span<const PageId> pages) {
  Outgoing& outgoing = outgoing_.at(request);
  outgoing.pages.assign(pages.begin(), pages.end());
  outgoing.progress = board_.take(outgoing.model);
  if (outgoing.progress) begun_.push_back(request);  // Else nobody could see how far it is.
}

void KvExchange::layer_done(const KvPart& part) {
  const auto& progress = outgoing_.at(part.request).progress;
  if (progress) store_progress(board_.at(*progress), {part.first, part.count, part.layer + 1});
}

std::vector<ReserveKv> KvExchange::take_begun() {
  const bool some_wait = std::any_of(outgoing_.begin(), outgoing_.end(),
                                     [](const auto& outgoing) { return outgoing.second.pages.empty(); });
  if (some_wait) engine_.let_in();
  std::vector<ReserveKv> begun;
  for (const RequestId request : std::exchange(begun_, {})) {
    const auto found = outgoing_.find(request);
    SANGAM_ASSERT(found != outgoing_.end() && found->second.progress, request);
    const Outgoing& outgoing = found->second;
    const auto terms = engine_.kv_terms(outgoing.model);
    SANGAM_ASSERT(terms.has_value(), outgoing.model);
    ReserveKv wish;
    wish.request = request;
    wish.tokens = Tokens(outgoing.tokens);
    wish.kv = place_of(*terms, outgoing.pages);
    wish.progress_page = std::uint32_t(outgoing.progress->page);
    wish.progress_offset = outgoing.progress->offset;
    begun.push_back(std::move(wish));
  }
  return begun;
}

KvPlace KvExchange::place_of(const KvTerms& terms, std::span<const PageId> pages) const {
  const KvLayout& layout = terms.layout;
  KvPlace place{.kv_name = terms.kv_name,
                .isa = isa_,
                .page = Bytes(std::int64_t(terms.page_bytes)),
                .layers = layout.layers,
                .kv_heads = layout.kv_heads,
                .head_dim = layout.head_dim,
                .tokens_per_page = layout.tokens_per_page,
                .pages = {},
                .digest = {}};
  for (const PageId page : pages) place.pages.push_back(std::uint32_t(page));
  return place;
}

Result<KvPlace> KvExchange::place(const Run& run) const {
  const auto terms = engine_.kv_terms(run.model);
  if (!terms) return terms.error();
  const KvLayout& layout = terms->layout;
  const std::int64_t tokens = tokens_written(run);
  const auto written = std::size_t((tokens + layout.tokens_per_page - 1) / layout.tokens_per_page);
  const std::vector<PageId>& held = outgoing_.at(run.request).pages;
  SANGAM_ASSERT(written <= held.size(), run.request, written, held.size());
  const std::span<const PageId> pages = std::span(held).first(written);
  KvPlace place = place_of(*terms, pages);
  place.digest = digest_of_kv(pool_.arena(), layout, pages, tokens);
  return place;
}

void KvExchange::forget(RequestId request) {
  const auto found = outgoing_.find(request);
  if (found == outgoing_.end()) return;
  std::erase(begun_, request);
  if (found->second.progress) board_.give_back(found->second.model, *found->second.progress);
  outgoing_.erase(found);
}

Result<std::shared_ptr<const PeerPool>> KvExchange::peer(const ActorName& worker, Incarnation incarnation) {
  Peer& peer = peers_[worker];
  if (peer.pool && peer.incarnation == incarnation) return peer.pool;
  auto opened = PeerPool::open(options_.holder, worker.text(), options_.page_bytes);
  if (!opened) return opened.error();
  peer = {incarnation, std::move(*opened)};
  return peer.pool;
}

Result<void> KvExchange::reserve(const ReserveKv& wish) {
  if (wish.kv.isa != isa_) {
    return make_error(ErrorCode::invalid_input, named(wish) + " are computed with " + wish.kv.isa + ", here it is " +
                                                    isa_ + "; give both workers one isa");
  }
  auto from = peer(wish.from, wish.incarnation);
  if (!from) return from.error();
  const auto pages = engine_.reserve_kv({wish.request, wish.model, wish.tokens, terms_of(wish.kv)});
  if (!pages) return pages.error();
  if (auto placed = check_place(wish, **from, pages->size()); !placed) {
    (void)engine_.cancel(wish.request);
    return placed;
  }
  incoming_[wish.request] = {wish, std::move(*from), {pages->begin(), pages->end()},
                             std::vector<std::int64_t>(std::size_t(wish.kv.layers))};
  return {};
}

std::int64_t KvExchange::copy(Incoming& incoming, std::int64_t layer, std::int64_t until) const {
  std::int64_t& copied = incoming.copied[std::size_t(layer)];
  const PageArena& here = pool_.arena();
  const PageArena there = incoming.from->arena();
  std::int64_t bytes = 0;
  for (const KvPiece& piece : kv_pieces(layout_of(incoming.wish.kv), layer, copied, until - copied)) {
    const std::byte* const source = there.at(PageId(incoming.wish.kv.pages[piece.page])) + piece.offset;
    std::memcpy(here.at(incoming.pages[piece.page]) + piece.offset, source, piece.bytes);
    bytes += std::int64_t(piece.bytes);
  }
  copied = until;
  return bytes;
}

KvPulled KvExchange::pull(Bytes most) {
  KvPulled pulled;
  std::int64_t left = most.count();
  for (auto& [request, incoming] : incoming_) {
    const ReserveKv& wish = incoming.wish;
    const KvProgress progress = load_progress(incoming.from->arena().at(PageId(wish.progress_page)) +
                                              wish.progress_offset.count());
    // Whoever restarts uses the page for something else.
    if (progress.done + progress.chunk > wish.tokens.count() || progress.layers > wish.kv.layers) continue;
    bool advanced = false;
    for (std::int64_t layer = 0; layer < wish.kv.layers; ++layer) {
      const std::int64_t copied = incoming.copied[std::size_t(layer)];
      const std::int64_t reached = progress.done + (layer < progress.layers ? progress.chunk : 0);
      const std::int64_t per_token = std::int64_t(layout_of(wish.kv).bytes_per_token()) / wish.kv.layers;
      const std::int64_t until = std::min(reached, copied + std::max<std::int64_t>(left, 0) / per_token);
      pulled.more |= until < reached;
      if (until <= copied) continue;
      left -= copy(incoming, layer, until);
      advanced = true;
    }
    if (advanced) pulled.advanced.push_back(request);
  }
  return pulled;
}

void KvExchange::drop(RequestId request) {
  if (incoming_.erase(request) > 0) (void)engine_.cancel(request);
}

Result<void> KvExchange::take_over(const HandOver& offered) {
  const ReserveKv wish = wish_of(offered);
  if (const auto early = incoming_.find(wish.request);
      early != incoming_.end() && !same_source(early->second.wish, wish))
    drop(wish.request);
  if (!incoming_.contains(wish.request)) {
    if (auto reserved = reserve(wish); !reserved) return reserved;
  }
  Incoming& incoming = incoming_.at(wish.request);
  for (std::int64_t layer = 0; layer < incoming.wish.kv.layers; ++layer)
    (void)copy(incoming, layer, wish.tokens.count());
  const std::string digest =
      digest_of_kv(pool_.arena(), layout_of(incoming.wish.kv), incoming.pages, wish.tokens.count());
  Result<void> taken = make_error(ErrorCode::corrupt,
                                  named(wish) + " are not what their digest says; compute them anew");
  if (digest == offered.kv.digest) taken = engine_.add_prefilled(offered.run);
  incoming_.erase(wish.request);
  if (!taken) (void)engine_.cancel(wish.request);
  return taken;
}

}  // namespace sangam
