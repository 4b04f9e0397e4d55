// Counting the tokens of a stream, and naming its failures.
#include "cli/replay_answer.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "gateway/api/errors.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr std::size_t kRefusalMax = 64 << 10;

/// The code that the mesh calls so; else what the status says.
ErrorCode code_of(std::string_view name, int status) {
  for (int code = 0; code <= int(ErrorCode::internal); ++code) {
    if (form_of(ErrorCode(code)).code == name && code != int(ErrorCode::none)) return ErrorCode(code);
  }
  if (status == 429) return ErrorCode::queue_full;
  if (status == 503) return ErrorCode::unavailable;
  return status >= 400 && status < 500 ? ErrorCode::invalid_input : ErrorCode::internal;
}

std::string_view text_at(const json::value& value, std::string_view pointer) {
  boost::system::error_code absent;
  const auto* found = value.find_pointer(pointer, absent);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

/// The tokens of a chunk: as many as it has log probabilities, or one where there is text and none of these.
std::int64_t tokens_in(const json::value& chunk) {
  boost::system::error_code absent;
  const auto* tokens = chunk.find_pointer("/choices/0/logprobs/tokens", absent);
  if (tokens != nullptr && tokens->is_array()) return std::int64_t(tokens->get_array().size());
  return text_at(chunk, "/choices/0/text").empty() ? 0 : 1;
}

}  // namespace

ReplayAnswer::ReplayAnswer(const sim::TraceRequest& request, sim::Slo slo) : request_(request), slo_(slo), tokens_(slo) {}

void ReplayAnswer::on_body(std::string_view piece, Micros now) {
  if (status_ == 200) {
    events_.feed(piece, [&](std::string_view data) { on_data(data, now); });
    return;
  }
  refusal_ += piece.substr(0, kRefusalMax - std::min(kRefusalMax, refusal_.size()));
}

void ReplayAnswer::on_data(std::string_view data, Micros now) {
  if (data == "[DONE]") return;
  boost::system::error_code failure;
  const auto chunk = json::parse(data, failure);
  if (failure || (chunk.is_object() && chunk.get_object().contains("error"))) return fail(data, 0);
  if (const auto finish = text_at(chunk, "/choices/0/finish_reason"); !finish.empty()) finish_ = finish;
  const auto count = tokens_in(chunk);
  if (count == 0) return;
  if (!first_) first_ = now;
  last_ = now;
  seen_ += count;
  tokens_.add(now - request_.arrival, count);
}

void ReplayAnswer::fail(std::string_view error_json, int status) {
  boost::system::error_code failure;
  const auto value = json::parse(error_json, failure);
  const auto message = failure ? error_json : text_at(value, "/error/message");
  code_ = code_of(failure ? std::string_view() : text_at(value, "/error/code"), status);
  problem_ = (status == 0 ? std::string() : std::to_string(status) + ": ") + std::string(message);
}

ErrorCode ReplayAnswer::outcome(const std::optional<Error>& failure) const {
  if (failure) return failure->code;
  if (code_ != ErrorCode::none) return code_;
  if (seen_ >= request_.output.count() && !finish_.empty()) return ErrorCode::none;
  // The mesh shortens what does not fit the model's context; anything else is a stream that broke off.
  return finish_ == "length" ? ErrorCode::context_length : ErrorCode::internal;
}

sim::RequestRecord ReplayAnswer::end(const std::optional<Error>& failure, Micros now) {
  if (failure) problem_ = failure->context;
  if (!failure && status_ != 200) fail(refusal_, status_);
  sim::RequestRecord record;
  record.app = request_.app;
  record.arrival = request_.arrival;
  record.input = request_.input;
  record.output = request_.output;
  record.ttft_slo = slo_.ttft;
  record.tpot_slo = slo_.tpot;
  record.code = outcome(failure);
  const bool failed = record.code != ErrorCode::none;
  record.late = tokens_.late(request_.output, failed);
  if (first_) record.ttft = *first_ - request_.arrival;
  record.end = failed ? now : last_;
  return record;
}

}  // namespace sangam
