// Gathers what the core tells of one call into what the client gets: a stream of events, or one answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gateway/api/replies.hpp"
#include "gateway/core/client_call.hpp"

namespace sangam {

/// Bounded by the call's max_tokens: a slow client cannot make it grow further.
class CallAnswer {
 public:
  /// `echo`: what each choice's text begins with; empty or one for every choice.
  CallAnswer(ReplyHead head, bool stream, std::size_t choices, std::vector<std::string> echo);

  void take(const decltype(CallEvent::what)& event);

  /// Called after each event; the reader wakes up by it.
  std::function<void()> changed = [] {};

  [[nodiscard]] bool admitted() const { return admitted_; }
  [[nodiscard]] bool over() const { return over_; }
  /// When the first token was to be expected, if the mesh has said so.
  [[nodiscard]] const std::optional<CallQuoted>& quote() const { return quote_; }
  /// Why the call failed. After the headers of a stream it is also in the stream.
  [[nodiscard]] const std::optional<ApiError>& failure() const { return failure_; }
  /// Server-sent events that are ready; empties them.
  [[nodiscard]] std::string take_stream() { return std::exchange(ready_, {}); }
  /// After a good end.
  [[nodiscard]] std::string whole() const { return whole_answer(head_, choices_, usage_); }

 private:
  void on(const CallAdmitted&);
  void on(const CallQuoted& quoted) { quote_ = quoted; }
  void on(const TextDelta& delta);
  void on(const ChoiceEnded& ended);
  void on(const CallEnded& ended);
  void on(const CallFailed& failed);
  void begin(std::size_t choice);
  void event(std::string_view json);

  ReplyHead head_;
  bool stream_;
  std::vector<ChoiceAnswer> choices_;
  std::vector<std::string> echo_;
  std::vector<bool> begun_;
  std::string ready_;
  TokenUsage usage_;
  bool admitted_ = false;
  bool over_ = false;
  std::optional<CallQuoted> quote_;
  std::optional<ApiError> failure_;
};

}  // namespace sangam
