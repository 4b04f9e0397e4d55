// From tokens to what a client may see.
#include "gateway/core/choice_text.hpp"

#include <algorithm>

namespace sangam {
namespace {

std::int64_t code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

ChoiceText::ChoiceText(const ClientCall& call)
    : text_(call.text),
      stream_(call.text->stream(call.skip_special_tokens)),
      stops_(call.stop),
      stops_from_(call.sampling.min_tokens.count()) {}

ChoiceText::Released ChoiceText::push(TokenId token, const PositionLogprobs* logprobs) {
  Released released;
  ++tokens_;
  if (logprobs != nullptr) waiting_.push_back({released_ + pending_.size(), piece(*logprobs)});
  search(stream_->push(token), released);
  return released;
}

ChoiceText::Released ChoiceText::finish() {
  Released released;
  if (stopped_) return released;
  search(stream_->finish(), released);
  if (stopped_) return released;
  release(pending_.size(), released);
  release_pieces(true, released);
  return released;
}

void ChoiceText::search(std::string_view fresh, Released& released) {
  code_points_ += code_points(fresh);
  if (stops_.empty() || tokens_ <= stops_from_) {
    pending_ += fresh;
    return release(pending_.size(), released);
  }
  for (const char byte : fresh) {
    pending_ += byte;
    if (const std::size_t length = stops_.push(byte)) {
      release(pending_.size() - length, released);
      pending_.clear();
      stopped_ = released.stopped = true;
      return;
    }
  }
  release(pending_.size() - stops_.held(), released);
}

void ChoiceText::release(std::size_t bytes, Released& released) {
  released.text.append(pending_, 0, bytes);
  pending_.erase(0, bytes);
  released_ += bytes;
  release_pieces(false, released);
}

/// A token goes with the text that begins in it; those without text wait for the next text or the end.
void ChoiceText::release_pieces(bool at_end, Released& released) {
  while (!waiting_.empty() && (at_end || waiting_.front().begin < released_)) {
    released.pieces.push_back(std::move(waiting_.front().piece));
    waiting_.pop_front();
  }
}

TokenPiece ChoiceText::piece(const PositionLogprobs& logprobs) const {
  TokenPiece piece{text_->bytes_of(logprobs.chosen.token), logprobs.chosen.logprob, code_points_, {}};
  for (const TokenLogprob& other : logprobs.top) {
    piece.top.push_back({text_->bytes_of(other.token), other.logprob});
  }
  return piece;
}

}  // namespace sangam
