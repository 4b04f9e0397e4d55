// The course of one replayed request, from what arrives of its answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/event_stream.hpp"
#include "sim/report/record.hpp"
#include "sim/trace/trace.hpp"

namespace sangam {

/// Pure: instants come in. All are since the beginning of the run; a request's arrival is when it was due, not when
/// it was sent, so that a client that falls behind does not make its mesh look better.
class ReplayAnswer {
 public:
  ReplayAnswer(const sim::TraceRequest& request, sim::Slo slo);

  void on_status(int status) { status_ = status; }
  void on_body(std::string_view piece, Micros now);
  /// The answer is there, or `failure` says why it never will be.
  [[nodiscard]] sim::RequestRecord end(const std::optional<Error>& failure, Micros now);

  [[nodiscard]] bool answered() const { return status_ != 0; }
  /// What went wrong, in the mesh's words; empty where nothing did.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void on_data(std::string_view data, Micros now);
  void fail(std::string_view error_json, int status);
  [[nodiscard]] ErrorCode outcome(const std::optional<Error>& failure) const;

  sim::TraceRequest request_;
  sim::Slo slo_;
  int status_ = 0;  ///< 0: nothing has come back yet.
  EventStream events_;
  std::string refusal_;  ///< Body of an answer that is no stream, as far as it is read.
  sim::LateTokens tokens_;
  std::int64_t seen_ = 0;
  std::optional<Micros> first_;  ///< Instants of tokens.
  Micros last_{0};
  std::string finish_;  ///< Why the stream says that it ended.
  ErrorCode code_ = ErrorCode::none;
  std::string problem_;
};

}  // namespace sangam
