// The same small trace on a real mesh and in the simulator with a profile that was measured a moment before: do the
// figures agree, and where do they not?
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/janus/arms.hpp"
#include "bench/processes.hpp"
#include "bench/report.hpp"
#include "cli/http_client.hpp"
#include "sim/trace/trace_file.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kModels[] = {"A-arith", "A-roman", "A-date"};
constexpr double kSlo = 0.2;  // Times the published objectives: these models are small.
constexpr double kSeconds = 30.0;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

/// Seconds of one request of so many tokens in and out.
double ask(const HttpBase& base, int prompt, int tokens, unsigned seed) {
  std::mt19937 random(seed);  // Another prompt each time: the prefix cache shall not help.
  std::string ids;
  for (int i = 0; i < prompt; ++i) ids += (i > 0 ? "," : "") + std::to_string(3 + random() % 60);
  const std::string body = R"({"model":"A-arith","prompt":[)" + ids + R"(],"temperature":0,"ignore_eos":true,"max_tokens":)" +
                           std::to_string(tokens) + "}";
  const auto began = Clock::now();
  const auto answer = http_call(base, {"POST", "/v1/completions", body, Millis(60'000)});
  if (!answer || answer->status != 200) give_up(answer ? answer->body : answer.error().context);
  return seconds_since(began);
}

double median_of(int rounds, const std::function<double(unsigned)>& measure) {
  std::vector<double> values;
  for (int i = 0; i < rounds; ++i) values.push_back(measure(unsigned(i)));
  std::nth_element(values.begin(), values.begin() + rounds / 2, values.end());
  return values[std::size_t(rounds / 2)];
}

/// Prefill as a line over two lengths, a step alone, and what seven sequences more add to it.
sim::ModelSpec profile(const HttpBase& base) {
  const auto prefill = [&](int tokens) { return median_of(25, [&](unsigned s) { return ask(base, tokens, 1, s); }); };
  const double at_16 = prefill(16);
  const double at_128 = prefill(128);
  const auto step_of = [&](int streams) {
    return median_of(7, [&](unsigned s) {
      std::vector<std::thread> threads;
      const auto began = Clock::now();
      for (int i = 0; i < streams; ++i) threads.emplace_back([&base, s, i] { (void)ask(base, 16, 65, 1000 * s + unsigned(i)); });
      for (std::thread& thread : threads) thread.join();
      return (seconds_since(began) - at_16) / 64.0;
    });
  };
  const double alone = step_of(1);
  const double beside = step_of(16);  // Eight on each of two workers.
  sim::ModelSpec model;
  model.weights = Bytes(4'000'000);
  model.kv_per_token = Bytes(1'024);
  model.prefill_per_token = std::max(0.0, (at_128 - at_16) / 112.0) * 1e6;
  model.prefill_fixed = std::max(0.0, at_16 * 1e6 - 16.0 * model.prefill_per_token);
  model.decode_per_sequence = std::max(0.0, (beside - alone) / 7.0) * 1e6;
  model.decode_fixed = std::max(1.0, alone * 1e6 - model.decode_per_sequence);
  return model;
}

/// Poisson arrivals at about half of what two such workers could do.
sim::Trace trace_for(const sim::ModelSpec& model, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  sim::Trace trace;
  for (const char* name : kModels) trace.apps.emplace_back(name);
  const double work = model.prefill(Tokens(80)) + 12.0 * (model.decode_fixed + model.decode_per_sequence);
  const double rate = 0.5 * 2.0 * 1e6 / work;
  std::exponential_distribution<double> gap(rate);
  std::uniform_int_distribution<int> input(16, 144);
  std::uniform_int_distribution<int> output(2, 22);
  for (double at = gap(random); at < kSeconds; at += gap(random)) {
    trace.requests.push_back({Micros(std::int64_t(at * 1e6)), std::uint32_t(random() % 3), Tokens(input(random)), Tokens(output(random))});
  }
  return trace;
}

struct Figures {
  double ttft_p50 = 0.0, ttft_p90 = 0.0, tpot_p50 = 0.0, tokens = 0.0, requests = 0.0;
};

/// What `sangam replay` reports.
Figures replay(const std::string& url, const fs::path& folder) {
  const std::string sangam = (fs::read_symlink("/proc/self/exe").parent_path() / "sangam").string();
  std::string models;
  for (const char* name : kModels) models += (models.empty() ? "" : ",") + std::string(name) + "=" + name;
  const std::string json = (folder / "real.json").string();
  const std::string command = sangam + " replay " + (folder / "trace.csv").string() + " --url " + url + " --models " + models +
                              " --slo " + std::to_string(kSlo) + " --json " + json + " > /dev/null";
  if (std::system(command.c_str()) != 0) give_up("failed: " + command);
  std::ifstream file(json);
  std::stringstream text;
  text << file.rdbuf();
  const auto report = boost::json::parse(text.str()).as_object();
  const auto number = [](const boost::json::value& value) { return value.is_number() ? value.to_number<double>() : 0.0; };
  const auto& all = report.at("all").as_object();
  return {number(report.at("ttft_ms").at("p50")), number(report.at("ttft_ms").at("p90")), number(report.at("tpot_ms").at("p50")),
          100.0 * number(all.at("tokens_on_time_share")), 100.0 * number(all.at("requests_on_time_share"))};
}

Figures simulated(const sim::ModelSpec& profile, const sim::Trace& trace) {
  sim::Scenario scenario;
  scenario.fixed = true;
  scenario.workers = {{1, 2}};
  scenario.letter_takes = Micros(0);  // The profile was measured through the whole mesh.
  scenario.clients.slo_factor = kSlo;
  for (const char* name : kModels) {
    sim::ModelSpec model = profile;
    model.id = ModelId(name);
    scenario.models.push_back(model);
    scenario.clients.models.emplace_back(name);
  }
  const sim::Report report = sim::make_report(sim::simulate(scenario, trace).measured);
  return {report.ttft.p50.value_or(0.0), report.ttft.p90.value_or(0.0), report.tpot.p50.value_or(0.0),
          janus::percent_of(report.all.token_share()), janus::percent_of(report.all.request_share())};
}

void compare(const Report& report, const std::string& what, const std::string& unit, double simulated, double real) {
  const bool is_share = unit == "%";
  const bool near = is_share ? std::abs(simulated - real) <= 5.0 : std::abs(std::log(simulated / real)) <= std::log(1.5);
  report.row({what + ", simulated", simulated, unit, "on the mesh: " + Report::number(real) + " " + unit,
              is_share ? "within 5 points" : "within half as much again", near});
}

}  // namespace
}  // namespace sangam

int main(int argc, char** argv) {
  using namespace sangam;
  const Report report(argc, argv);
  const std::uint64_t seed = janus::seed_of(argc, argv);
  const fs::path folder = fs::temp_directory_path() / ("sangam-sim-vs-real-" + std::to_string(getpid()));
  fs::create_directories(folder);
  {
    const Processes mesh(std::string(SANGAM_SOURCE_DIR) + "/configs/two_workers.toml", (folder / "state").string());
    await_ready(mesh.url);
    const HttpBase base = parse_http_base(mesh.url).value();
    const sim::ModelSpec model = profile(base);
    report.row({"profile: prefill", model.prefill_fixed, "us a prompt", "", "", true});
    report.row({"profile: prefill", model.prefill_per_token, "us a token", "", "", true});
    report.row({"profile: step", model.decode_fixed, "us", "", "", true});
    report.row({"profile: step", model.decode_per_sequence, "us a sequence", "", "", true});
    const sim::Trace trace = trace_for(model, seed);
    if (const auto written = sim::write_trace(trace, folder / "trace.csv"); !written) give_up(written.error().context);
    report.row({"requests", double(trace.requests.size()), "", "", "", true});
    const Figures real = replay(mesh.url, folder);
    const Figures played = simulated(model, trace);
    compare(report, "TTFT, median", "ms", played.ttft_p50, real.ttft_p50);
    compare(report, "TTFT, p90", "ms", played.ttft_p90, real.ttft_p90);
    compare(report, "TPOT, median", "ms", played.tpot_p50, real.tpot_p50);
    compare(report, "tokens on time", "%", played.tokens, real.tokens);
    compare(report, "requests on time", "%", played.requests, real.requests);
  }
  fs::remove_all(folder);
}
