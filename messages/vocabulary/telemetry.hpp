// The messages that the control loops see the world by: what workers do, what clients got, what models are made
// of, and what the oracle makes of it.
//
// Counts run since their speaker's start and never fall but by its restart, so a lost letter loses no count and
// a late one (its sequence is not above the last) is dropped: whoever hears takes differences.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/request.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// What one model does on one worker.
struct ModelLoad {
  ModelId model;
  std::int64_t waiting = 0;  ///< Runs taken and not yet in a step.
  std::int64_t running = 0;
  Pages kv_used{0};
  Pages kv_reserved{0};  ///< For runs that are on their way here.
  std::uint64_t prefill_tokens = 0;  ///< Computed since the worker's start, as the following counts.
  std::uint64_t output_tokens = 0;
  std::uint64_t decode_steps = 0;  ///< Steps that had a decode of this model.
  std::uint64_t context_tokens = 0;  ///< Read by attention: the sum of the contexts of all decoded tokens.
  Micros prefill_time{0};  ///< Of steps, by share of rows.
  Micros decode_time{0};
};
BOOST_DESCRIBE_STRUCT(ModelLoad, (),
                      (model, waiting, running, kv_used, kv_reserved, prefill_tokens, output_tokens, decode_steps,
                       context_tokens, prefill_time, decode_time))

/// Worker -> oracle, placement, autoscaler and gateways, twice a second.
struct Telemetry {
  ActorName worker;
  Incarnation incarnation{};
  std::uint64_t sequence = 0;
  Micros up{0};  ///< Since the start; all times below are parts of it.
  Micros busy{0};
  std::uint64_t steps = 0;
  Micros longest_step{0};   ///< Since the letter before.
  Micros prefill_ahead{0};  ///< Predicted time until the prefills taken so far are done (EPDT).
  double compute = 0.0;     ///< Share of the time since the letter before in prefills, or of the measured peak
                            ///< FLOP/s where that is more.
  double bandwidth = 0.0;   ///< Share of its measured read bandwidth.
  Pages pages{0};
  Pages pages_used{0};
  std::int64_t transfers = 0;  ///< Orders under way.
  Bytes moved{0};              ///< By orders, since the start.
  std::int64_t devices = 1;    ///< The tensor-parallel class: how many devices the worker is.
  std::vector<ModelLoad> models;
};
BOOST_DESCRIBE_STRUCT(Telemetry, (),
                      (worker, incarnation, sequence, up, busy, steps, longest_step, prefill_ahead, compute,
                       bandwidth, pages, pages_used, transfers, moved, devices, models))

/// What a client got.
struct ServedRequest {
  ModelId model;
  Tokens input{0};
  Tokens output{0};
  Micros ttft{0};  ///< From arrival to the first token.
  Micros tpot{0};  ///< Mean over the tokens after the first; 0 with one token.
  Millis ttft_slo{0};  ///< 0: none.
  Millis tpot_slo{0};
  Tokens late{0};  ///< Token i is late after arrival + ttft_slo + (i - 1) tpot_slo (Janus, its metric).
  ErrorCode code = ErrorCode::none;  ///< Of a request that failed or was refused; all its tokens are late.
};
BOOST_DESCRIBE_STRUCT(ServedRequest, (), (model, input, output, ttft, tpot, ttft_slo, tpot_slo, late, code))

/// Gateway -> oracle, twice a second: what has ended since the letter before. Loss costs samples, no counts.
struct Served {
  ActorName gateway;
  std::vector<ServedRequest> requests;
};
BOOST_DESCRIBE_STRUCT(Served, (), (gateway, requests))

/// A weight tensor's bytes, named by their content.
struct SegmentSize {
  std::uint64_t digest = 0;  ///< First 8 bytes of the content hash.
  Bytes bytes{0};
};
BOOST_DESCRIBE_STRUCT(SegmentSize, (), (digest, bytes))

/// Worker -> placement, oracle and gateways, when it has read a model, and again when they appear anew.
struct ModelTable {
  ModelId model;
  std::int64_t devices = 1;  ///< As in Telemetry: the workers that can hold it.
  Bytes kv_per_token{0};
  std::vector<SegmentSize> segments;  ///< Distinct.
};
BOOST_DESCRIBE_STRUCT(ModelTable, (), (model, devices, kv_per_token, segments))

/// What a model's clients ask for, over the window that the oracle believes.
struct ClientTraffic {
  double requests_per_second = 0.0;
  double input_mean = 0.0;  ///< Tokens, as the next three.
  double input_deviation = 0.0;
  double output_mean = 0.0;
  double output_deviation = 0.0;
  Millis ttft_slo{0};  ///< Median of the latest requests, as the next; 0: none.
  Millis tpot_slo{0};
};
BOOST_DESCRIBE_STRUCT(ClientTraffic, (),
                      (requests_per_second, input_mean, input_deviation, output_mean, output_deviation, ttft_slo,
                       tpot_slo))

/// What a worker takes for a model, as learned; microseconds.
struct ModelCosts {
  double step = 0.0;           ///< A step, beside what is in it:
  double prompt = 0.0;         ///< a prompt,
  double prompt_token = 0.0;   ///< a token of it,
  double sequence = 0.0;       ///< a token that is made,
  double context_token = 0.0;  ///< and a token that its attention reads.
  bool settled = false;        ///< Enough was measured; before, they are what the oracle began with.
};
BOOST_DESCRIBE_STRUCT(ModelCosts, (), (step, prompt, prompt_token, sequence, context_token, settled))

/// What a model needs and what more workers would give it. Shares are of one worker of the model's class.
struct ModelForecast {
  ModelId model;
  double requests_per_second = 0.0;  ///< In the short window, as the next.
  double input_tokens_per_second = 0.0;
  double volatility = 0.0;  ///< Peak over mean of the token rate, 1 for a constant one.
  Bytes kv{0};              ///< Demand: KV bytes, and shares of compute and bandwidth; each with its deviation.
  Bytes kv_deviation{0};
  double compute = 0.0;
  double compute_deviation = 0.0;
  double bandwidth = 0.0;
  double bandwidth_deviation = 0.0;
  /// Lower bounds of on-time shares with 1, 2 ... workers: of first tokens where these only prefill, of later tokens
  /// where they only decode, and of the worse of both where each does everything.
  std::vector<double> prefill_attainment;
  std::vector<double> decode_attainment;
  std::vector<double> mixed_attainment;
  ClientTraffic traffic;
  ModelCosts costs;
};
BOOST_DESCRIBE_STRUCT(ModelForecast, (),
                      (model, requests_per_second, input_tokens_per_second, volatility, kv, kv_deviation, compute,
                       compute_deviation, bandwidth, bandwidth_deviation, prefill_attainment, decode_attainment,
                       mixed_attainment, traffic, costs))

/// Oracle -> placement, autoscaler, gateways, twice a second: all models that it knows.
struct Forecast {
  std::vector<ModelForecast> models;
};
BOOST_DESCRIBE_STRUCT(Forecast, (), (models))

/// One model on one worker.
struct PlannedInstance {
  ModelId model;
  ActorName worker;
  WorkerRole role = WorkerRole::mixed;
  std::vector<ActorName> sources;  ///< Workers to copy the weights from, the cheapest first.
  std::int64_t step = 0;  ///< Instances of a step are brought up when those of all earlier ones are there.
};
BOOST_DESCRIBE_STRUCT(PlannedInstance, (), (model, worker, role, sources, step))

/// Placement or autoscaler -> lifecycle and each other: what shall be active of `models` anywhere, and on
/// `workers` at all. What is there beyond it leaves, when its model is up elsewhere or its room is needed.
struct Plan {
  ActorName by;
  std::uint64_t epoch = 0;  ///< An older one than the last of the same planner is ignored.
  std::vector<ModelId> models;
  std::vector<ActorName> workers;
  std::vector<PlannedInstance> instances;
};
BOOST_DESCRIBE_STRUCT(Plan, (), (by, epoch, models, workers, instances))

/// Gateway -> scheduler: when would the first token of such a request be there? Nothing is queued. Answered by
/// Quoted with attempt 0.
struct AskQuote {
  RequestId request{};
  ModelId model;
  ServiceClass service_class = ServiceClass::normal;
  Tokens prefill_tokens{0};
  Tokens output_max{0};
  Millis ttft_in{0};
  ActorName answer_to;
};
BOOST_DESCRIBE_STRUCT(AskQuote, (),
                      (request, model, service_class, prefill_tokens, output_max, ttft_in, answer_to))

/// Scheduler -> queue -> gateway, at admission, and scheduler -> gateway in answer to AskQuote.
struct Quoted {
  RequestId request{};
  Attempt attempt = 0;
  Millis earliest{0};  ///< The first token comes within [earliest, latest] nine times in ten.
  Millis latest{0};    ///< 0: too little has been seen for an interval.
  ErrorCode code = ErrorCode::none;  ///< Why it would be refused.
  Millis feasible_in{0};  ///< With a code: when one could start that is on time; 0: unknown.
};
BOOST_DESCRIBE_STRUCT(Quoted, (), (request, attempt, earliest, latest, code, feasible_in))

}  // namespace sangam
