// One call of a client, ready to run, and what happens to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gateway/api/errors.hpp"
#include "gateway/api/model_text.hpp"
#include "messages/vocabulary/message.hpp"

namespace sangam {

/// The shell's name for a call; unique in one run of the gateway.
enum class CallId : std::uint64_t {};

/// Validated and tokenized. Choice i answers prompt i / n; choices of one prompt differ in their seeds.
struct ClientCall {
  ModelId model{};
  TenantId tenant{"default"};
  ServiceClass service_class = ServiceClass::normal;
  Millis ttft{0};  ///< For the deadline class.
  Millis ttl{0};   ///< Not to be begun later than this; 0: no limit.
  bool requeue_when_late = false;
  std::vector<std::vector<TokenId>> prompts{};
  std::int64_t n = 1;
  Sampling sampling{};  ///< Of each choice, except for the seed of all but the first.
  std::vector<std::string> stop{};
  bool skip_special_tokens = true;
  std::shared_ptr<const ModelText> text{};
  TraceContext trace{};

  [[nodiscard]] std::size_t choices() const { return prompts.size() * std::size_t(n); }
  [[nodiscard]] Tokens longest_prompt() const {
    std::size_t longest = 0;
    for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
    return Tokens(std::int64_t(longest));
  }
};

/// A token as text: its exact bytes, which may be part of a code point.
struct TokenPiece {
  std::string bytes;
  double logprob = 0.0;
  std::int64_t text_offset = 0;  ///< In code points, from the start of the choice's text.
  struct Alternative {
    std::string bytes;
    double logprob = 0.0;
  };
  std::vector<Alternative> top;  ///< Best first.
};

struct TokenUsage {
  Tokens prompt{0};
  Tokens cached{0};  ///< Of `prompt`, found in the prefix cache.
  Tokens completion{0};
};

/// Every choice is owned by the queue: the answer can begin.
struct CallAdmitted {};
/// The mesh has said of every choice when to expect its first token: the widest bounds of all, since the call came. At
/// most once, and only before the first token.
struct CallQuoted {
  Millis earliest{0};
  Millis latest{0};
};
/// Text of one choice, in order. With logprobs, `pieces` are the tokens whose text begins in it.
struct TextDelta {
  std::size_t choice = 0;
  std::string text;
  std::vector<TokenPiece> pieces;
};
/// Exactly one per choice of a call that ends well, after its text.
struct ChoiceEnded {
  std::size_t choice = 0;
  FinishReason finish = FinishReason::stop;  ///< stop or length
};
/// Terminal: after the end of every choice.
struct CallEnded {
  TokenUsage usage;
};
/// Terminal: instead of all that is missing.
struct CallFailed {
  ApiError error;
};

struct CallEvent {
  CallId call{};
  std::variant<CallAdmitted, CallQuoted, TextDelta, ChoiceEnded, CallEnded, CallFailed> what;
};

/// What the metrics learn, one kind of fact each.
struct FirstTokenSeen {
  ModelId model;
  Tokens prompt{0};
  Micros after{0};  ///< Since the call was opened.
};
struct NextTokensSeen {
  ModelId model;
  std::int64_t count = 0;
  Micros gap{0};  ///< Since the tokens before them.
};
struct ChoiceMeasured {
  ModelId model;
  std::string finish;  ///< stop, length, abort or error
  Tokens prompt{0};
  Tokens generated{0};
  Tokens max_tokens{0};
  std::int64_t n = 1;
  Micros whole{0};
  Micros queued{0};
  Micros prefill{0};
  Micros decode{0};
  Attempt attempts = 1;
};
/// A first token that had been quoted.
enum class QuoteOutcome : std::uint8_t { early, inside, late };
struct QuoteMeasured {
  ModelId model;
  QuoteOutcome outcome = QuoteOutcome::inside;
  Micros width{0};
};
using Measurement = std::variant<FirstTokenSeen, NextTokensSeen, ChoiceMeasured, QuoteMeasured>;

}  // namespace sangam
