// The same small trace on a real mesh and in the simulator with a profile that was measured a moment before: do the
// figures agree, and where do they not?
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "bench/janus/arms.hpp"
#include "bench/processes.hpp"
#include "bench/report.hpp"
#include "cli/http_client.hpp"
#include "cli/profile/measure.hpp"
#include "sim/trace/trace_file.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModels[] = {"A-arith", "A-roman", "A-date"};
constexpr double kSlo = 0.2;  // Times the published objectives: these models are small.
constexpr double kSeconds = 30.0;

Profile profile_of(const HttpBase& base, std::uint64_t seed) {
  MeasureOptions options;
  options.seed = seed;
  auto profile = measure(base, ModelId(kModels[0]), options);
  if (!profile) give_up(profile.error().context);
  return std::move(*profile);
}

/// Poisson arrivals at a quarter of what two such workers could do: the simulator gives each of them a core of its own,
/// where here seven processes and the client share those that there are.
sim::Trace trace_for(const Profile& profile, std::uint64_t seed) {
  const sim::ModelSpec model = profile.spec();
  std::mt19937_64 random(seed);
  sim::Trace trace;
  for (const char* name : kModels) trace.apps.emplace_back(name);
  const double work = model.prefill(Tokens(80)) + 12.0 * (model.decode_fixed + model.decode_per_sequence) + profile.request_us;
  const double rate = 0.25 * 2.0 * 1e6 / work;
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

Figures simulated(const Profile& profile, const sim::Trace& trace) {
  sim::Scenario scenario;
  scenario.fixed = true;
  scenario.workers = {{1, 2}};
  scenario.letter_takes = sim::letter_takes_of(profile.request_us);
  scenario.clients.slo_factor = kSlo;
  for (const char* name : kModels) {
    sim::ModelSpec model = profile.spec();
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
    const Profile profile = profile_of(base, seed);
    for (const CostName& name : kCostNames) {
      const FittedCost& cost = profile.costs.*name.cost;
      report.row({"profile: " + std::string(name.what), cost.value, "us",
                  "90 % within " + Report::number(cost.low) + " to " + Report::number(cost.high), "", true});
    }
    report.row({"profile: a later token beside its step", profile.between_steps_us, "us", "", "", true});
    report.row({"profile: a first token beside its step", profile.request_us, "us", "", "", true});
    report.row({"profile: R2 of step times", profile.costs.r2, "", "", "", true});
    const sim::Trace trace = trace_for(profile, seed);
    if (const auto written = sim::write_trace(trace, folder / "trace.csv"); !written) give_up(written.error().context);
    report.row({"requests", double(trace.requests.size()), "", "", "", true});
    const Figures real = replay(mesh.url, folder);
    const Figures played = simulated(profile, trace);
    compare(report, "TTFT, median", "ms", played.ttft_p50, real.ttft_p50);
    compare(report, "TTFT, p90", "ms", played.ttft_p90, real.ttft_p90);
    compare(report, "TPOT, median", "ms", played.tpot_p50, real.tpot_p50);
    compare(report, "tokens on time", "%", played.tokens, real.tokens);
    compare(report, "requests on time", "%", played.requests, real.requests);
  }
  fs::remove_all(folder);
}
