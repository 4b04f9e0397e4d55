// Requests that two engines share: one computes the prompt, the other goes on from its keys and values.
//
// The one (`Engine::add_prefill`) tells a KvSink of every layer as it is computed; the other lends pages for
// them (`Engine::reserve_kv`) and goes on (`Engine::add_prefilled`). Copying, and when lent pages go back unused, is
// the callers' part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/engine/kv_pages.hpp"
#include "gpu/kernels/paged_kv.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// What both sides must have in common, so that pages can be copied byte by byte and mean the same. Kernels
/// of another instruction set compute other last bits; whoever pairs workers sees to that.
struct KvTerms {
  std::string kv_name;  ///< As in LoadedModel; empty: nobody can tell what the pages mean.
  std::size_t page_bytes = 0;
  KvLayout layout;
};

[[nodiscard]] Result<void> check_terms(const KvTerms& ours, const KvTerms& theirs);

/// Bytes of one page of a sequence.
struct KvPiece {
  std::size_t page = 0;  ///< Index among the sequence's pages.
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Where the keys and values of positions [first, first + count) of one layer lie, on both sides.
[[nodiscard]] std::vector<KvPiece> kv_pieces(const KvLayout& layout, std::int64_t layer, std::int64_t first,
                                             std::int64_t count);

/// Keys and values of one layer that are complete now.
struct KvPart {
  RequestId request{};
  std::int64_t layer = 0;
  std::int64_t first = 0;  ///< The first position; those before it have been told.
  std::int64_t count = 0;
  std::span<const PageId>
      pages;  ///< All of the sequence's. They keep their place and content until `handed_over`.
};

/// Hears, layer by layer, of requests that another engine will go on with.
class KvSink {
 public:
  virtual ~KvSink() = default;
  /// The prompt is let in, and next to be computed. `pages`: all of the sequence's; as in KvPart.
  virtual void begins(RequestId request, std::span<const PageId> pages) = 0;
  /// In the middle of a step, which waits: start a copy and return. What the prefix cache had is told
  /// together with the first rows.
  virtual void layer_done(const KvPart& part) = 0;
};

/// Asks for pages for `tokens` of a request whose prompt another engine computes.
struct KvWish {
  RequestId request{};
  ModelId model;
  Tokens tokens{};
  KvTerms terms;  ///< Of the other engine.
};

/// Pages that no sequence runs on: of prompts that are being handed over, and lent for such that will come.
/// All or nothing: each entry leaves with all of its pages. Bounded by pages.
class KvHandOvers {
 public:
  explicit KvHandOvers(KvPages& pages) : pages_(pages) {}
  ~KvHandOvers();
  KvHandOvers(const KvHandOvers&) = delete;
  KvHandOvers& operator=(const KvHandOvers&) = delete;

  /// A prompt that has been computed as far as `computed`, which is empty where it may not be shared.
  void keep(RequestId request, const ModelId& model, KvHold kv, std::vector<TokenId> computed);
  /// Its pages may change from now on. False where it is not known.
  bool handed_over(RequestId request);

  /// Takes pages, which must be available.
  [[nodiscard]] std::span<const PageId> lend(const KvWish& wish, std::int64_t count);
  /// Null where no such pages are lent.
  [[nodiscard]] const KvHold* find_lent(RequestId request, const ModelId& model) const;
  [[nodiscard]] bool contains(RequestId request) const {
    return outgoing_.contains(request) || lent_.contains(request);
  }
  /// Its request has come.
  [[nodiscard]] KvHold claim(RequestId request);

  /// Of either kind. False where it is not known.
  bool cancel(RequestId request);
  /// How many requests will come for lent pages.
  [[nodiscard]] std::int64_t expected() const { return std::int64_t(lent_.size()); }
  [[nodiscard]] Pages held(const ModelId& model) const;

 private:
  struct Outgoing {
    ModelId model;
    KvHold kv;
    std::vector<TokenId> computed;
  };
  struct Lent {
    ModelId model;
    KvHold kv;
  };

  KvPages& pages_;
  std::unordered_map<RequestId, Outgoing> outgoing_;
  std::unordered_map<RequestId, Lent> lent_;
};

}  // namespace sangam
