// The series, on prometheus-cpp's registry.
#include "gateway/metrics/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>
#include <prometheus/text_serializer.h>

#include <map>

#include "gateway/metrics/buckets.hpp"

namespace sangam {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Summary;

double seconds(Micros time) {
  return double(time.count()) / 1e6;
}
double count_of(Tokens tokens) {
  return double(tokens.count());
}

/// Adds series of one model to families that all models share.
class ModelRegistrar {
 public:
  ModelRegistrar(prometheus::Registry& registry, const ModelId& model)
      : registry_(registry), labels_{{"model_name", model.text()}, {"engine", "0"}} {}

  Counter& counter(const std::string& name, const std::string& help, Labels more = {}) {
    more.insert(labels_.begin(), labels_.end());
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(more);
  }
  Gauge& gauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels_);
  }
  Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels_, buckets);
  }

 private:
  prometheus::Registry& registry_;
  Labels labels_;
};

/// A counter that follows a total kept elsewhere.
void follow(Counter& counter, std::uint64_t total) {
  counter.Increment(double(total) - counter.Value());
}

/// What the oracle foresees; zeros where there is none.
struct ForecastSeries {
  explicit ForecastSeries(ModelRegistrar r);
  void show(const ModelForecast& forecast);

  Gauge &requests, &input_tokens, &volatility, &kv, &compute, &bandwidth, &attainment;
};

ForecastSeries::ForecastSeries(ModelRegistrar r)
    : requests(r.gauge("sangam_forecast_requests_per_second", "Requests that the oracle expects.")),
      input_tokens(r.gauge("sangam_forecast_input_tokens_per_second", "Tokens of their prompts.")),
      volatility(r.gauge("sangam_forecast_volatility", "Peak over mean of the token rate.")),
      kv(r.gauge("sangam_forecast_kv_bytes", "KV bytes that the model will need, over all workers.")),
      compute(r.gauge("sangam_forecast_compute_workers", "Compute that it will need, in workers.")),
      bandwidth(r.gauge("sangam_forecast_bandwidth_workers", "Memory bandwidth that it will need, in workers.")),
      attainment(r.gauge("sangam_forecast_attainment_ratio",
                         "Lower bound of the share of tokens that one worker alone would give in time.")) {}

void ForecastSeries::show(const ModelForecast& forecast) {
  requests.Set(forecast.requests_per_second);
  input_tokens.Set(forecast.input_tokens_per_second);
  volatility.Set(forecast.volatility);
  kv.Set(double(forecast.kv.count()));
  compute.Set(forecast.compute);
  bandwidth.Set(forecast.bandwidth);
  attainment.Set(forecast.mixed_attainment.empty() ? 0.0 : forecast.mixed_attainment.front());
}

struct ModelSeries {
  explicit ModelSeries(ModelRegistrar r);
  void show(const ModelState& state);
  void count(const FirstTokenSeen& seen);
  void count(const NextTokensSeen& seen);
  void count(const ChoiceMeasured& measured);
  void count(const QuoteMeasured& measured);

  Gauge &running, &waiting, &swapped, &kv_used, &kv_used_old, &instances;
  Counter &prompt_tokens, &generation_tokens, &preemptions, &rejections, &expirations, &resubmissions, &self_decodes;
  Counter &prefix_queries, &prefix_hits, &prefix_queries_old, &prefix_hits_old;
  std::map<std::string, Counter*> success;  ///< By finished_reason.
  std::map<QuoteOutcome, Counter*> quotes;
  Histogram &ttft, &quote_width, &inter_token, &inter_token_old, &per_output_token;
  Histogram &whole, &queued, &prefill, &decode, &inference;
  Histogram &prompt_size, &output_size, &output_max, &params_max, &params_n;
  ForecastSeries forecast;
};

ModelSeries::ModelSeries(ModelRegistrar r)
    : running(r.gauge("vllm:num_requests_running", "Number of requests in model execution batches.")),
      waiting(r.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.")),
      swapped(r.gauge("vllm:num_requests_swapped", "Always 0; for dashboards of older versions.")),
      kv_used(r.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")),
      kv_used_old(r.gauge("vllm:gpu_cache_usage_perc", "As vllm:kv_cache_usage_perc; the older name.")),
      instances(r.gauge("sangam_model_instances", "Workers that serve the model.")),
      prompt_tokens(r.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.")),
      generation_tokens(r.counter("vllm:generation_tokens_total", "Number of generation tokens processed.")),
      preemptions(r.counter("vllm:num_preemptions_total", "Cumulative number of preemptions.")),
      rejections(r.counter("vllm:admission_rejections_total", "Requests that the queue refused.")),
      expirations(
          r.counter("sangam_requests_expired_total", "Requests whose deadline passed before execution.")),
      resubmissions(r.counter("sangam_requests_resubmitted_total", "Attempts beyond the first.")),
      self_decodes(r.counter("sangam_self_decodes_total",
                             "Runs that were decoded where their prompt was computed, though others should have.")),
      prefix_queries(r.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in tokens.")),
      prefix_hits(r.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in tokens.")),
      prefix_queries_old(r.counter("vllm:gpu_prefix_cache_queries_total", "The older name of the queries.")),
      prefix_hits_old(r.counter("vllm:gpu_prefix_cache_hits_total", "The older name of the hits.")),
      ttft(r.histogram("vllm:time_to_first_token_seconds", "Time to first token in seconds.",
                       buckets::ttft())),
      quote_width(r.histogram("sangam_ttft_quote_width_seconds", "Latest minus earliest quoted first token.",
                              buckets::ttft())),
      inter_token(r.histogram("vllm:inter_token_latency_seconds", "Time between tokens.", buckets::token())),
      inter_token_old(r.histogram("vllm:time_per_output_token_seconds", "The older name.", buckets::token())),
      per_output_token(r.histogram("vllm:request_time_per_output_token_seconds",
                                   "Mean time per output token of each request.", buckets::token())),
      whole(
          r.histogram("vllm:e2e_request_latency_seconds", "End to end request latency.", buckets::request())),
      queued(r.histogram("vllm:request_queue_time_seconds", "Time spent in WAITING.", buckets::request())),
      prefill(r.histogram("vllm:request_prefill_time_seconds", "Time spent in PREFILL.", buckets::request())),
      decode(r.histogram("vllm:request_decode_time_seconds", "Time spent in DECODE.", buckets::request())),
      inference(
          r.histogram("vllm:request_inference_time_seconds", "Time spent in RUNNING.", buckets::request())),
      prompt_size(
          r.histogram("vllm:request_prompt_tokens", "Prefill tokens per request.", buckets::tokens())),
      output_size(
          r.histogram("vllm:request_generation_tokens", "Generated tokens per request.", buckets::tokens())),
      output_max(r.histogram("vllm:request_max_num_generation_tokens",
                             "Maximum number of requested generation tokens.", buckets::tokens())),
      params_max(r.histogram("vllm:request_params_max_tokens", "The max_tokens of each request.",
                             buckets::tokens())),
      params_n(r.histogram("vllm:request_params_n", "The n of each request.", buckets::choices())),
      forecast(r) {
  for (const std::string reason : {"stop", "length", "abort", "error"}) {
    success[reason] =
        &r.counter("vllm:request_success_total", "Ended requests by reason.", {{"finished_reason", reason}});
  }
  const std::map<QuoteOutcome, std::string> outcomes{
      {QuoteOutcome::early, "early"}, {QuoteOutcome::inside, "inside"}, {QuoteOutcome::late, "late"}};
  for (const auto& [outcome, name] : outcomes) {
    quotes[outcome] = &r.counter("sangam_ttft_quotes_total", "First tokens with a quote, by where they came.",
                                 {{"outcome", name}});
  }
}

void ModelSeries::show(const ModelState& state) {
  running.Set(double(state.running));
  waiting.Set(double(state.waiting));
  kv_used.Set(state.kv_used);
  kv_used_old.Set(state.kv_used);
  instances.Set(double(state.instances));
  forecast.show(state.forecast.value_or(ModelForecast{}));
  follow(preemptions, state.preemptions);
  follow(rejections, state.refused);
  follow(expirations, state.expired);
  follow(self_decodes, state.self_decodes);
  for (Counter* counter : {&prefix_queries, &prefix_queries_old}) follow(*counter, state.prefix_queries);
  for (Counter* counter : {&prefix_hits, &prefix_hits_old}) follow(*counter, state.prefix_hits);
}

void ModelSeries::count(const FirstTokenSeen& seen) {
  ttft.Observe(seconds(seen.after));
  prompt_tokens.Increment(count_of(seen.prompt));
  generation_tokens.Increment();
}

void ModelSeries::count(const QuoteMeasured& measured) {
  quotes.at(measured.outcome)->Increment();
  quote_width.Observe(seconds(measured.width));
}

/// Tokens of one step share its time.
void ModelSeries::count(const NextTokensSeen& seen) {
  generation_tokens.Increment(double(seen.count));
  const double each = seconds(seen.gap) / double(seen.count);
  for (std::int64_t i = 0; i < seen.count; ++i) {
    inter_token.Observe(each);
    inter_token_old.Observe(each);
  }
}

void ModelSeries::count(const ChoiceMeasured& measured) {
  success.at(measured.finish)->Increment();
  resubmissions.Increment(double(measured.attempts > 0 ? measured.attempts - 1 : 0));
  params_n.Observe(double(measured.n));
  params_max.Observe(count_of(measured.max_tokens));
  output_max.Observe(count_of(measured.max_tokens));
  output_size.Observe(count_of(measured.generated));
  prompt_size.Observe(count_of(measured.prompt));
  whole.Observe(seconds(measured.whole));
  if (measured.generated == Tokens{0}) return;
  queued.Observe(seconds(measured.queued));
  prefill.Observe(seconds(measured.prefill));
  decode.Observe(seconds(measured.decode));
  inference.Observe(seconds(measured.prefill + measured.decode));
  if (measured.generated < Tokens{2}) return;
  per_output_token.Observe(seconds(measured.decode) / (count_of(measured.generated) - 1.0));
}

}  // namespace

struct Metrics::Series {
  explicit Series(const std::vector<ModelId>& names)
      : requests(prometheus::BuildCounter()
                     .Name("http_requests_total")
                     .Help("Requests by handler, method and status.")
                     .Register(registry)),
        durations(prometheus::BuildHistogram()
                      .Name("http_request_duration_seconds")
                      .Help("Time until the last byte.")
                      .Register(registry)),
        request_sizes(prometheus::BuildSummary()
                          .Name("http_request_size_bytes")
                          .Help("Bytes of request bodies.")
                          .Register(registry)),
        response_sizes(prometheus::BuildSummary()
                           .Name("http_response_size_bytes")
                           .Help("Bytes of response bodies.")
                           .Register(registry)),
        connections(prometheus::BuildGauge()
                        .Name("sangam_connections")
                        .Help("Open client connections.")
                        .Register(registry)
                        .Add({})),
        calls(prometheus::BuildGauge()
                  .Name("sangam_calls")
                  .Help("Calls in flight.")
                  .Register(registry)
                  .Add({})) {
    for (const ModelId& name : names) models.emplace(name, ModelSeries(ModelRegistrar(registry, name)));
  }

  prometheus::Registry registry;
  Family<Counter>& requests;
  Family<Histogram>& durations;
  Family<Summary>& request_sizes;
  Family<Summary>& response_sizes;
  Gauge& connections;
  Gauge& calls;
  std::map<ModelId, ModelSeries> models;
};

Metrics::Metrics(const std::vector<ModelId>& models) : series_(std::make_unique<Series>(models)) {}
Metrics::~Metrics() = default;

void Metrics::count(const Measurement& measurement) {
  std::visit(
      [&](const auto& fact) {
        const auto found = series_->models.find(fact.model);
        if (found != series_->models.end()) found->second.count(fact);
      },
      measurement);
}

void Metrics::count(const HttpMeasured& exchange) {
  const std::string status = std::to_string(exchange.status / 100) + "xx";
  series_->requests.Add({{"handler", exchange.handler}, {"method", exchange.method}, {"status", status}})
      .Increment();
  const Labels handler{{"handler", exchange.handler}};
  series_->durations.Add({{"handler", exchange.handler}, {"method", exchange.method}}, buckets::http())
      .Observe(exchange.seconds);
  series_->request_sizes.Add(handler, Summary::Quantiles{}).Observe(double(exchange.request_bytes));
  series_->response_sizes.Add(handler, Summary::Quantiles{}).Observe(double(exchange.response_bytes));
}

std::string Metrics::text(const MeshView& fleet, std::size_t connections, std::size_t calls) {
  for (auto& [model, series] : series_->models) series.show(fleet.state_of(model));
  series_->connections.Set(double(connections));
  series_->calls.Set(double(calls));
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace sangam
