// The tree of kept pages, its hash index and the order in which pages are given up.
#include "gpu/engine/prefix_cache.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

/// A page, or the root of a realm, which has none.
struct PrefixCache::Entry {
  Entry* parent = nullptr;             ///< Null: a root.
  const PrefixRealm* realm = nullptr;  ///< Of a root: its key.
  Shelf* shelf = nullptr;
  Digest name;
  std::vector<TokenId> tokens;
  PageId page{};
  std::int64_t users = 0;             ///< Open chains through it.
  std::int64_t children = 0;          ///< Pages behind it.
  std::list<Entry*>::iterator place;  ///< On the shelf, while a page has no user.
};

PrefixCache::PrefixCache(PagePool& pool, Hash hash) : pool_(pool), hash_(std::move(hash)) {}

PrefixCache::~PrefixCache() {
  for (auto& [model, shelf] : shelves_) {
    (void)shelf.reclaim(shelf.reclaimable());
    pool_.dismiss(shelf);
  }
  SANGAM_ASSERT(held() == Pages{0}, held());
}

/// The pool asks shelves for pages, so none may come or go while it does: they do here only.
PrefixCache::Shelf& PrefixCache::shelf_of(const std::string& model, PageOwner owner) {
  if (const auto found = shelves_.find(model); found != shelves_.end()) return found->second;
  for (auto unused = shelves_.begin(); unused != shelves_.end();) {
    if (unused->second.roots > 0) {
      ++unused;
      continue;
    }
    pool_.dismiss(unused->second);
    unused = shelves_.erase(unused);
  }
  Shelf& shelf = shelves_.try_emplace(model, *this).first->second;
  pool_.enlist(shelf, owner);
  return shelf;
}

PrefixCache::Chain PrefixCache::open(const PrefixRealm& realm, PageOwner owner) {
  SANGAM_ASSERT(realm.tokens_per_page >= 1, realm.tokens_per_page);
  const auto [place, is_new] = roots_.try_emplace(realm);
  std::unique_ptr<Entry>& root = place->second;
  if (is_new) {
    const std::string spelt = std::to_string(realm.model.size()) + ":" + realm.model + realm.salt;
    root = std::make_unique<Entry>();
    root->realm = &place->first;
    root->shelf = &shelf_of(realm.model, owner);
    ++root->shelf->roots;
    root->name = hash_(std::as_bytes(std::span(spelt)));
  }
  ++root->users;
  return {root.get(), 0, realm.tokens_per_page};
}

/// From the deepest page up, so that children lie before their parents among the idle.
void PrefixCache::close(Chain& chain) {
  Entry* entry = std::exchange(chain, {}).end;
  if (entry == nullptr) return;
  for (; entry->parent != nullptr; entry = entry->parent) {
    if (--entry->users > 0) continue;
    entry->place = entry->shelf->idle.insert(entry->shelf->idle.end(), entry);
    pool_.change(entry->page, pool_.state(entry->page).owner, PageUse::cached);
  }
  --entry->users;
  drop_if_unused(*entry);
}

void PrefixCache::follow(Chain& chain, std::span<const TokenId> tokens, std::vector<PageId>& pages) {
  SANGAM_ASSERT(chain.end != nullptr);
  for (const auto per_page = std::size_t(chain.tokens_per_page); tokens.size() >= per_page;
       tokens = tokens.subspan(per_page)) {
    const auto next = tokens.first(per_page);
    Entry* entry = find(*chain.end, name_behind(*chain.end, next), next);
    if (entry == nullptr) return;
    use(chain, *entry);
    pages.push_back(entry->page);
  }
}

PageId PrefixCache::keep(Chain& chain, std::span<const TokenId> tokens, PageId page) {
  SANGAM_ASSERT(chain.end != nullptr && std::int64_t(tokens.size()) == chain.tokens_per_page, tokens.size(),
                chain.tokens_per_page);
  const Digest name = name_behind(*chain.end, tokens);
  Entry* entry = find(*chain.end, name, tokens);
  if (entry == nullptr) {
    entry = entries_.emplace(name, std::make_unique<Entry>())->second.get();
    entry->parent = chain.end;
    entry->shelf = chain.end->shelf;
    entry->name = name;
    entry->tokens.assign(tokens.begin(), tokens.end());
    entry->page = page;
    entry->users = 1;
    ++chain.end->children;
    chain.end = entry;
    ++chain.length;
  } else {
    use(chain, *entry);
  }
  return entry->page;
}

Pages PrefixCache::idle(const std::string& model) const {
  const auto found = shelves_.find(model);
  return found == shelves_.end() ? Pages{0} : found->second.reclaimable();
}

Pages PrefixCache::used_only_by(std::span<const Chain* const> chains) const {
  std::unordered_map<const Entry*, std::int64_t> uses;
  Pages only;
  for (const Chain* chain : chains) {
    for (const Entry* entry = chain->end; entry != nullptr && entry->parent != nullptr; entry = entry->parent)
      if (++uses[entry] == entry->users) only += Pages{1};
  }
  return only;
}

Pages PrefixCache::Shelf::reclaim(Pages wanted) {
  Pages given;
  for (; given < wanted && !idle.empty(); given += Pages{1}) cache.evict(*idle.front());
  return given;
}

Digest PrefixCache::name_behind(const Entry& parent, std::span<const TokenId> tokens) const {
  std::vector<std::byte> spelt(sizeof parent.name.bytes + tokens.size_bytes());
  std::memcpy(spelt.data(), parent.name.bytes.data(), sizeof parent.name.bytes);
  std::memcpy(spelt.data() + sizeof parent.name.bytes, tokens.data(), tokens.size_bytes());
  return hash_(spelt);
}

PrefixCache::Entry* PrefixCache::find(const Entry& parent, const Digest& name,
                                      std::span<const TokenId> tokens) const {
  const auto [first, last] = entries_.equal_range(name);
  const auto found = std::find_if(first, last, [&](const auto& named) {
    const Entry& entry = *named.second;
    return entry.parent == &parent &&
           std::equal(tokens.begin(), tokens.end(), entry.tokens.begin(), entry.tokens.end());
  });
  return found == last ? nullptr : found->second.get();
}

void PrefixCache::use(Chain& chain, Entry& entry) {
  if (entry.users++ == 0) {
    entry.shelf->idle.erase(entry.place);
    pool_.change(entry.page, pool_.state(entry.page).owner, PageUse::kv);
  }
  chain.end = &entry;
  ++chain.length;
}

void PrefixCache::evict(Entry& entry) {
  SANGAM_ASSERT(entry.users == 0 && entry.children == 0, entry.users, entry.children);
  entry.shelf->idle.erase(entry.place);
  pool_.give_back(entry.page, pool_.state(entry.page).owner);
  Entry& parent = *entry.parent;
  const auto [first, last] = entries_.equal_range(entry.name);
  entries_.erase(std::find_if(first, last, [&](const auto& named) { return named.second.get() == &entry; }));
  --parent.children;
  if (parent.parent == nullptr) drop_if_unused(parent);
}

void PrefixCache::drop_if_unused(Entry& root) {
  if (root.users > 0 || root.children > 0) return;
  --root.shelf->roots;
  roots_.erase(roots_.find(*root.realm));
}

}  // namespace sangam
