// The messages of one request's way: gateway -> queue -> scheduler -> worker -> gateway.
//
// A request is named by its RequestId for life and by its Attempt for one try. The gateway owns the tokens
// that the client has seen; when a try is lost, it submits the request again with these tokens, one attempt
// higher. So every message here is idempotent: an attempt that is not the newest one is ignored.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// In what order overload is felt: best effort first, deadline last.
enum class ServiceClass : std::uint16_t { deadline, normal, best_effort };
BOOST_DESCRIBE_ENUM(ServiceClass, deadline, normal, best_effort)

/// Why a stream of tokens ended; `none` while it goes on.
enum class FinishReason : std::uint16_t { none, stop, length, cancelled, failed };
BOOST_DESCRIBE_ENUM(FinishReason, none, stop, length, cancelled, failed)

struct LogitBias {
  TokenId token = 0;
  double bias = 0.0;  ///< Added to the logit.
};
BOOST_DESCRIBE_STRUCT(LogitBias, (), (token, bias))

/// How the next token is chosen. The draw at a position depends on (seed, position) only.
struct Sampling {
  double temperature = 1.0;  ///< 0: greedy.
  std::int64_t top_k = 0;    ///< 0: all.
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::vector<LogitBias> logit_bias;
  std::uint64_t seed = 0;
  Tokens max_tokens{16};  ///< Over all attempts; `length` when reached.
  Tokens min_tokens{0};   ///< No stop token before this many.
  std::vector<TokenId> stop_tokens;  ///< The model's end tokens and the request's own, in that order of use.
  bool ignore_eos = false;           ///< Stop tokens do not stop.
  std::int64_t logprobs = -1;        ///< How many alternatives beside the chosen token; -1: no logprobs.
};
BOOST_DESCRIBE_STRUCT(Sampling, (),
                      (temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty,
                       frequency_penalty, logit_bias, seed, max_tokens, min_tokens, stop_tokens, ignore_eos,
                       logprobs))

/// Gateway -> queue. Answered by Accepted or Refused; a newer attempt replaces the older one.
struct Submit {
  RequestId request{};
  Attempt attempt = 1;
  ModelId model;
  TenantId tenant;
  ServiceClass service_class = ServiceClass::normal;
  Millis ttft_in{0};     ///< Time left until the first token is due; only for the deadline class.
  Millis expires_in{0};  ///< Dropped unexecuted after this long; 0: never.
  bool requeue_when_late = false;  ///< Deadline class: serve as best effort instead of refusing.
  std::vector<TokenId> prompt;
  std::vector<TokenId> generated;  ///< What the client has already got from earlier attempts.
  Sampling sampling;
  ActorName tokens_to;  ///< The gateway that holds the client.
};
BOOST_DESCRIBE_STRUCT(Submit, (),
                      (request, attempt, model, tenant, service_class, ttft_in, expires_in, requeue_when_late,
                       prompt, generated, sampling, tokens_to))

/// Queue -> gateway: the request is owned by the queue now.
struct Accepted {
  RequestId request{};
  Attempt attempt = 1;
};
BOOST_DESCRIBE_STRUCT(Accepted, (), (request, attempt))

/// Queue -> gateway, instead of tokens: at submission, or later when a deadline cannot be met any more.
struct Refused {
  RequestId request{};
  Attempt attempt = 1;
  ErrorCode code = ErrorCode::none;
  std::string why;
  Millis retry_after{0};  ///< When capacity is expected; 0: unknown.
};
BOOST_DESCRIBE_STRUCT(Refused, (), (request, attempt, code, why, retry_after))

/// Queue -> gateway, when the request is handed to a worker, and again when another one has taken it over.
struct Started {
  RequestId request{};
  Attempt attempt = 1;
  ActorName worker;
  Millis queued{0};  ///< How long it waited in the queue.
};
BOOST_DESCRIBE_STRUCT(Started, (), (request, attempt, worker, queued))

/// Queue -> gateway: this attempt is lost (its worker died); submit again with the tokens so far.
struct Interrupted {
  RequestId request{};
  Attempt attempt = 1;
  std::string why;
};
BOOST_DESCRIBE_STRUCT(Interrupted, (), (request, attempt, why))

/// Gateway -> queue -> scheduler or worker: stop all work. Ends in RunEnded if a worker had begun.
/// Cancelling what is not known is no error.
struct Cancel {
  RequestId request{};
};
BOOST_DESCRIBE_STRUCT(Cancel, (), (request))

/// Queue -> scheduler: the numbers of a waiting request, never its prompt. A newer attempt replaces the older.
struct Enqueued {
  RequestId request{};
  Attempt attempt = 1;
  ModelId model;
  ServiceClass service_class = ServiceClass::normal;
  std::uint64_t rank = 0;   ///< The queue's fair order among what has no deadline: lowest first.
  Millis ttft_in{0};        ///< As in Submit, counted from this sending.
  bool requeue_when_late = false;
  Tokens prefill_tokens{0};  ///< Prompt and already generated tokens.
  Tokens output_max{0};      ///< Tokens that may still be generated.
};
BOOST_DESCRIBE_STRUCT(Enqueued, (),
                      (request, attempt, model, service_class, rank, ttft_in, requeue_when_late,
                       prefill_tokens, output_max))

/// Queue -> scheduler: not waiting any more (cancelled, expired, replaced).
struct Withdrawn {
  RequestId request{};
  ModelId model;
};
BOOST_DESCRIBE_STRUCT(Withdrawn, (), (request, model))

/// Scheduler -> queue: hand the request to this worker now. A queue that no longer has it answers Withdrawn.
struct Dispatch {
  RequestId request{};
  Attempt attempt = 1;
  ActorName worker;
  Micros estimated{0};  ///< Predicted prefill time, returned in PrefillFinished.
  std::vector<ActorName> decode_on = {};  ///< Workers to hand the run over to after its prompt, the best first.
};
BOOST_DESCRIBE_STRUCT(Dispatch, (), (request, attempt, worker, estimated, decode_on))

/// Scheduler -> queue: no instance can meet the deadline.
struct CannotBeOnTime {
  RequestId request{};
  Attempt attempt = 1;
  Millis earliest_in{0};  ///< When the first token could have been there.
};
BOOST_DESCRIBE_STRUCT(CannotBeOnTime, (), (request, attempt, earliest_in))

/// Queue -> worker. Answered by TokensProduced to `tokens_to`, PrefillFinished to the scheduler and exactly one
/// RunEnded to the queue and the scheduler: by this worker, or by the one that has taken the run over from it. A
/// newer attempt replaces the older one.
struct Run {
  RequestId request{};
  Attempt attempt = 1;
  ModelId model;
  TenantId tenant;
  ServiceClass service_class = ServiceClass::normal;
  std::vector<TokenId> prompt;
  std::vector<TokenId> generated;
  Sampling sampling;
  ActorName tokens_to;
  Micros estimated{0};
  std::vector<ActorName> decode_on;  ///< As in Dispatch.
};
BOOST_DESCRIBE_STRUCT(Run, (),
                      (request, attempt, model, tenant, service_class, prompt, generated, sampling, tokens_to,
                       estimated, decode_on))

struct TokenLogprob {
  TokenId token = 0;
  double logprob = 0.0;  ///< Natural logarithm, before temperature and filters.
};
BOOST_DESCRIBE_STRUCT(TokenLogprob, (), (token, logprob))

/// The chosen token and the most likely alternatives, best first.
struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};
BOOST_DESCRIBE_STRUCT(PositionLogprobs, (), (chosen, top))

/// Worker -> gateway, in order, one per request and step that produced something. The one with a `finish`
/// is the last. A stop token ends the stream and is not among `tokens`.
struct TokensProduced {
  RequestId request{};
  Attempt attempt = 1;
  std::uint64_t first = 0;  ///< Index of tokens[0] among all generated tokens of the request.
  std::vector<TokenId> tokens;
  std::vector<PositionLogprobs> logprobs;  ///< As long as `tokens`, or empty.
  FinishReason finish = FinishReason::none;
  Tokens cached{0};     ///< Prompt tokens that the prefix cache held.
  ErrorCode code = ErrorCode::none;  ///< With FinishReason::failed.
  std::string why;
};
BOOST_DESCRIBE_STRUCT(TokensProduced, (), (request, attempt, first, tokens, logprobs, finish, cached, code, why))

/// Where the keys and values of a run lie in the pool of the worker that computed them, and what must be the
/// same elsewhere for a copy to mean the same.
struct KvPlace {
  std::string kv_name;  ///< Of weights and configuration.
  std::string isa;      ///< Of the kernels: others compute other last bits.
  Bytes page{0};
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t tokens_per_page = 0;
  std::vector<std::uint32_t> pages;  ///< Of the worker's pool, in the order of positions.
  /// Hex, of the keys and values of all positions: the hash of the pages' hashes, of each page by layer and head the
  /// keys, then the values.
  std::string digest;
};
BOOST_DESCRIBE_STRUCT(KvPlace, (),
                      (kv_name, isa, page, layers, kv_heads, head_dim, tokens_per_page, pages, digest))

/// Worker -> worker of the same host, when a prompt is let in and before anything of it is computed: set pages aside for
/// it, and copy what becomes final while it does. Answered by KvReserved, but for `tokens` 0, which takes it back.
/// What is set aside is free again when its time is up without progress, or one of the two is lost.
struct ReserveKv {
  RequestId request{};
  Attempt attempt = 1;
  ModelId model;
  Tokens tokens{0};  ///< Whose keys and values will come.
  ActorName from;
  Incarnation incarnation{};  ///< Of `from`.
  KvPlace kv = {};            ///< Of all these tokens; nothing of it is computed yet, so without a digest.
  /// Where, in the pool of `from`, it is said how much is final; the schema has the format.
  std::uint32_t progress_page = 0;
  Bytes progress_offset{0};
};
BOOST_DESCRIBE_STRUCT(ReserveKv, (),
                      (request, attempt, model, tokens, from, incarnation, kv, progress_page, progress_offset))

/// The answer to ReserveKv.
struct KvReserved {
  RequestId request{};
  Attempt attempt = 1;
  ActorName worker;
  ErrorCode code = ErrorCode::none;  ///< None: the pages are set aside. Otherwise nothing has happened here.
  std::string why = {};
};
BOOST_DESCRIBE_STRUCT(KvReserved, (), (request, attempt, worker, code, why))

/// Worker -> worker of the same host: go on with a run whose prompt is computed. All or nothing; answered by
/// HandOverEnded, until when the pages stay as they are.
struct HandOver {
  Run run;              ///< With all tokens so far as `generated`; the last one has no keys and values yet.
  TokensProduced said;  ///< What the gateway has been told last: whoever takes the run repeats it, since its own
                        ///< letters may be faster.
  ActorName from;
  Incarnation incarnation{};  ///< Of `from`.
  KvPlace kv = {};
};
BOOST_DESCRIBE_STRUCT(HandOver, (), (run, said, from, incarnation, kv))

/// The answer to HandOver.
struct HandOverEnded {
  RequestId request{};
  Attempt attempt = 1;
  ActorName worker;
  ErrorCode code = ErrorCode::none;  ///< None: the run is this worker's now. Otherwise nothing has happened here.
  std::string why = {};
};
BOOST_DESCRIBE_STRUCT(HandOverEnded, (), (request, attempt, worker, code, why))

/// Worker that has taken a run over -> queue and scheduler, before anything else that it says of the run. The queue
/// tells the gateway (Started), and passes it on to `from`, which has answered for the run until then; one that has no
/// such run answers with Cancel.
struct RunMoved {
  RequestId request{};
  Attempt attempt = 1;
  ModelId model;
  ActorName from;
  ActorName to;
};
BOOST_DESCRIBE_STRUCT(RunMoved, (), (request, attempt, model, from, to))

/// Worker -> scheduler, when a prefill ends, also in failure. At most one per attempt, before its RunEnded.
struct PrefillFinished {
  RequestId request{};
  Attempt attempt = 1;
  ActorName worker;
  ModelId model;
  Micros estimated{0};  ///< What the scheduler had assumed.
  Micros measured{0};
  Tokens computed{0};  ///< Excludes tokens found in the prefix cache.
};
BOOST_DESCRIBE_STRUCT(PrefillFinished, (), (request, attempt, worker, model, estimated, measured, computed))

/// Worker -> queue and scheduler: exactly one per Run, whatever happened, from the worker that had it last.
struct RunEnded {
  RequestId request{};
  Attempt attempt = 1;
  ActorName worker;
  ModelId model;
  FinishReason finish = FinishReason::none;
  Tokens produced{0};  ///< In this attempt.
};
BOOST_DESCRIBE_STRUCT(RunEnded, (), (request, attempt, worker, model, finish, produced))

}  // namespace sangam
