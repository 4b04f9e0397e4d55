// The text that Prometheus reads.
#include "gateway/metrics/metrics.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>

using namespace sangam;

namespace {

/// Sample lines by name with labels.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.rfind(' ');
    REQUIRE(space != std::string::npos);
    const bool fresh = samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second;
    CHECK_MESSAGE(fresh, line, " appears twice");
  }
  return samples;
}

std::string series(const std::string& name, const std::string& model, const std::string& more = "") {
  return name + "{engine=\"0\"" + more + ",model_name=\"" + model + "\"}";
}

ChoiceMeasured choice(const std::string& finish) {
  return {.model = ModelId("a/b"),
          .finish = finish,
          .prompt = Tokens{3},
          .generated = Tokens{5},
          .max_tokens = Tokens{16},
          .n = 1,
          .whole = Millis{1700},
          .queued = Millis{100},
          .prefill = Millis{400},
          .decode = Millis{1200},
          .attempts = 2};
}

}  // namespace

TEST_CASE("every name that dashboards read is there from the start, for every model, with zeros") {
  Metrics metrics({ModelId("a/b"), ModelId("c")});
  const auto samples = samples_of(metrics.text(MeshView(), 0, 0));
  for (const std::string model : {"a/b", "c"}) {
    for (const std::string name :
         {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:num_requests_swapped",
          "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "vllm:prompt_tokens_total",
          "vllm:generation_tokens_total", "vllm:num_preemptions_total", "vllm:prefix_cache_queries_total",
          "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total",
          "vllm:gpu_prefix_cache_hits_total", "sangam_ttft_quote_width_seconds_count"}) {
      CAPTURE(name);
      REQUIRE(samples.contains(series(name, model)));
      CHECK(samples.at(series(name, model)) == 0.0);
    }
    for (const std::string name :
         {"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
          "vllm:time_per_output_token_seconds", "vllm:request_time_per_output_token_seconds",
          "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
          "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds",
          "vllm:request_inference_time_seconds", "vllm:request_prompt_tokens",
          "vllm:request_generation_tokens", "vllm:request_max_num_generation_tokens", "vllm:request_params_n",
          "vllm:request_params_max_tokens"}) {
      CAPTURE(name);
      CHECK(samples.at(series(name + "_count", model)) == 0.0);
    }
    for (const std::string reason : {"stop", "length", "abort", "error"}) {
      CHECK(samples.contains(
          series("vllm:request_success_total", model, ",finished_reason=\"" + reason + "\"")));
    }
  }
}

TEST_CASE("measurements land in the series and buckets of their model") {
  Metrics metrics({ModelId("a/b"), ModelId("c")});
  metrics.count(FirstTokenSeen{ModelId("a/b"), Tokens{3}, Millis{30}});
  metrics.count(NextTokensSeen{ModelId("a/b"), 4, Millis{80}});  // 20 ms each.
  metrics.count(choice("stop"));
  metrics.count(FirstTokenSeen{ModelId("unknown"), Tokens{3}, Millis{30}});
  const auto samples = samples_of(metrics.text(MeshView(), 0, 0));
  const auto bucket = [&](const std::string& name, const std::string& edge) {
    return samples.at(name + "_bucket{engine=\"0\",model_name=\"a/b\",le=\"" + edge + "\"}");
  };
  CHECK(bucket("vllm:time_to_first_token_seconds", "0.02") == 0.0);
  CHECK(bucket("vllm:time_to_first_token_seconds", "0.04") == 1.0);
  CHECK(bucket("vllm:inter_token_latency_seconds", "0.01") == 0.0);
  CHECK(bucket("vllm:inter_token_latency_seconds", "0.025") == 4.0);
  CHECK(bucket("vllm:e2e_request_latency_seconds", "1.5") == 0.0);
  CHECK(bucket("vllm:e2e_request_latency_seconds", "2") == 1.0);
  CHECK(samples.at(series("vllm:request_time_per_output_token_seconds_sum", "a/b")) == doctest::Approx(0.3));
  CHECK(samples.at(series("vllm:prompt_tokens_total", "a/b")) == 3.0);
  CHECK(samples.at(series("vllm:generation_tokens_total", "a/b")) == 5.0);
  CHECK(samples.at(series("sangam_requests_resubmitted_total", "a/b")) == 1.0);
  CHECK(samples.at(series("vllm:request_success_total", "a/b", ",finished_reason=\"stop\"")) == 1.0);
  CHECK(samples.at(series("vllm:generation_tokens_total", "c")) == 0.0);
}

TEST_CASE("gauges show what workers reported last") {
  Metrics metrics({ModelId("a/b")});
  MeshView fleet;
  fleet.status(InstanceStatus{.worker = ActorName("w"),
                              .model = ModelId("a/b"),
                              .running = 3,
                              .kv_used = Pages{1},
                              .kv_total = Pages{4},
                              .preemptions = 2,
                              .self_decodes = 5});
  auto samples = samples_of(metrics.text(fleet, 7, 1));
  CHECK(samples.at(series("vllm:num_requests_running", "a/b")) == 3.0);
  CHECK(samples.at(series("vllm:kv_cache_usage_perc", "a/b")) == 0.25);
  CHECK(samples.at(series("vllm:num_preemptions_total", "a/b")) == 2.0);
  CHECK(samples.at(series("sangam_self_decodes_total", "a/b")) == 5.0);
  CHECK(samples.at("sangam_connections") == 7.0);
  fleet.lost(ActorName("w"));
  samples = samples_of(metrics.text(fleet, 0, 0));
  CHECK(samples.at(series("vllm:num_requests_running", "a/b")) == 0.0);
  CHECK(samples.at(series("vllm:num_preemptions_total", "a/b")) == 2.0);
}

TEST_CASE("HTTP is counted by route, method and kind of status") {
  Metrics metrics({});
  metrics.count(HttpMeasured{"/v1/models", "GET", 200, 0.002, 0, 120});
  metrics.count(HttpMeasured{"/v1/models", "GET", 404, 0.002, 0, 80});
  const auto samples = samples_of(metrics.text(MeshView(), 0, 0));
  CHECK(samples.at("http_requests_total{handler=\"/v1/models\",method=\"GET\",status=\"2xx\"}") == 1.0);
  CHECK(samples.at("http_response_size_bytes_sum{handler=\"/v1/models\"}") == 200.0);
}
