// Tokens of one choice become text: decoded, searched for stop strings, cut, with logprobs beside it.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gateway/core/client_call.hpp"
#include "gateway/core/stop_strings.hpp"

namespace sangam {

/// Holds back only what may still become a stop string, and incomplete code points.
class ChoiceText {
 public:
  explicit ChoiceText(const ClientCall& call);

  struct Released {
    std::string text;
    std::vector<TokenPiece> pieces;
    bool stopped = false;  ///< A stop string is complete: the text ends before it.
  };
  /// Takes the next token; `logprobs` is null where none were asked for. Not called after `stopped`.
  [[nodiscard]] Released push(TokenId token, const PositionLogprobs* logprobs);
  /// No more tokens: what was held back.
  [[nodiscard]] Released finish();

 private:
  void search(std::string_view fresh, Released& released);
  void release(std::size_t bytes, Released& released);
  void release_pieces(bool at_end, Released& released);
  [[nodiscard]] TokenPiece piece(const PositionLogprobs& logprobs) const;

  struct Waiting {
    std::size_t begin;  ///< In bytes of the whole text.
    TokenPiece piece;
  };

  std::shared_ptr<const ModelText> text_;
  std::unique_ptr<TokenStream> stream_;
  StopStrings stops_;
  std::int64_t stops_from_;  ///< Stop strings count only behind this many tokens (min_tokens).
  std::int64_t tokens_ = 0;
  std::string pending_;           ///< Decoded, not yet released.
  std::size_t released_ = 0;      ///< Bytes given out.
  bool stopped_ = false;          ///< A stop string was met: nothing follows.
  std::int64_t code_points_ = 0;  ///< Decoded so far.
  std::deque<Waiting> waiting_;
};

}  // namespace sangam
