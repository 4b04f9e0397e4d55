// Dividing segments among sources, and proving what they send.
#include "gpu/residency/weights_pull.hpp"

#include <algorithm>
#include <utility>

#include "gpu/residency/model_card.hpp"
#include "gpu/residency/weights_shelf.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// What is asked of one source ahead of what has come: enough that it never waits for us, little enough that a faster
/// one finds work left.
constexpr Bytes kAheadMax{16 << 20};
constexpr std::size_t kAsksAheadMax = 64;

Digest digest_in(const BlobPart& part) {
  return Digest{part.hash};
}

}  // namespace

WeightsPull::WeightsPull(const ModelId& model, Sources sources) : model_(model.text()) {
  for (auto& pull : sources) {
    pull->ask(card_name(model), kCardMax);
    sources_.push_back({std::move(pull), {}});
  }
}

void WeightsPull::give_up(Source& source, const Error& why) {
  last_error_ = why;
  left_.insert(left_.begin(), source.asked.begin(), source.asked.end());
  left_bytes_ += source.under_way;
  source.asked.clear();
  source.pull.reset();
}

void WeightsPull::drop_given_up() {
  std::erase_if(sources_, [](const Source& source) { return source.pull == nullptr; });
}

/// True when it is complete.
Result<bool> WeightsPull::take_card(Source& source, const BlobPart& part) {
  source.card.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  if (!part.is_last()) return false;
  if (digest_of(std::string_view(source.card)) == digest_in(part)) return true;
  return make_error(ErrorCode::corrupt, part.name.text() + " does not hash to what its sender says");
}

Result<std::optional<Blueprint>> WeightsPull::blueprint(Millis wait) {
  for (Source& source : sources_) {
    // Only the first is waited for; there is work as soon as any of them answers.
    auto part = source.pull->next(std::exchange(wait, Millis(0)));
    if (part && !*part) continue;
    const auto complete = part ? take_card(source, **part) : Result<bool>(part.error());
    if (!complete) {
      give_up(source, complete.error());
    } else if (*complete) {
      auto blueprint = blueprint_of_card(source.card, "card of " + model_);
      if (blueprint) {
        source.is_proven = true;
        card_ = source.card;
        return std::optional<Blueprint>(std::move(*blueprint));
      }
      give_up(source, blueprint.error());
    }
  }
  drop_given_up();
  if (sources_.empty()) return *last_error_;
  return std::optional<Blueprint>();
}

/// Of several sources none takes more than half of its share of what is left, so that all end together (guided
/// self-scheduling: Polychronopoulos and Kuck, 1987).
void WeightsPull::ask_for_more(Source& source) {
  const auto sources = std::int64_t(sources_.size());
  const auto may_ask = [&] {
    const Bytes ahead = sources == 1 ? kAheadMax : std::min(kAheadMax, Bytes(left_bytes_.count() / (2 * sources)));
    return source.asked.empty() || (source.asked.size() < kAsksAheadMax && source.under_way < ahead);
  };
  while (source.is_proven && !left_.empty() && may_ask()) {
    const Wanted wanted = std::move(left_.front());
    left_.pop_front();
    left_bytes_ -= wanted.bytes;
    source.pull->ask(wanted.name, wanted.bytes);
    source.asked.push_back(wanted);
    source.under_way += wanted.bytes;
  }
}

Result<bool> WeightsPull::take_next(Source& source, SegmentLoad& load, Bytes& moved, Millis wait) {
  auto part = source.pull->next(wait);
  if (part && !*part) return false;
  if (!part) {
    give_up(source, part.error());
  } else if (!source.is_proven) {
    const auto complete = take_card(source, **part);
    if (!complete) {
      give_up(source, complete.error());
    } else if (*complete && source.card != card_) {
      give_up(source, make_error(ErrorCode::corrupt, "card of " + model_ + ": another source has other weights"));
    } else {
      source.is_proven = *complete;
    }
  } else {
    SANGAM_ASSERT(!source.asked.empty() && source.asked.front().name == (*part)->name, (*part)->name);
    const Wanted wanted = source.asked.front();
    const Result<void> put = (*part)->size == wanted.bytes
                                 ? load.put(wanted.index, (*part)->offset, (*part)->bytes)
                                 : Result<void>(make_error(ErrorCode::corrupt, wanted.name.text() + " has another size"));
    if (!put && put.error().code != ErrorCode::corrupt) return put.error();
    moved += Bytes(std::int64_t((*part)->bytes.size()));
    if (!put) {
      give_up(source, put.error());
    } else if ((*part)->is_last()) {
      source.asked.pop_front();
      source.under_way -= wanted.bytes;
    }
  }
  return true;
}

Result<void> WeightsPull::advance(SegmentLoad& load, Bytes most, Millis wait) {
  if (!std::exchange(has_begun_, true)) {
    for (const SegmentLoad::Awaited& one : load.awaited()) {
      left_.push_back({one.index, segment_name(one.digest), one.bytes});
      left_bytes_ += one.bytes;
    }
  }
  Bytes moved{0};
  bool something_came = true;
  while (something_came && moved < most && !load.complete()) {
    something_came = false;
    for (Source& source : sources_) {
      ask_for_more(source);
      auto came = take_next(source, load, moved, std::exchange(wait, Millis(0)));
      if (!came) return came.error();
      something_came |= *came;
    }
    drop_given_up();
    if (sources_.empty() && !load.complete())
      return make_error(ErrorCode::unavailable, last_error_->context);
  }
  return {};
}

}  // namespace sangam
