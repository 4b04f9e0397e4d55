// How good the oracle's forecasts are on models, queues and workers that are played step by step, how much of the
// error is chance, and what forecasts and fits take. Times are the thread's own.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "actors/oracle/oracle_core.hpp"
#include "bench/report.hpp"
#include "tests/unit/oracle/played_mesh.hpp"

using namespace sangam;

namespace {

constexpr int kModels = 12;
constexpr double kSeconds = 1'800.0;  // Played; the last third is held out.
constexpr double kHeldOut = kSeconds * 2.0 / 3.0;
constexpr double kWindow = 10.0;

double worked_micros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e6 + double(now.tv_nsec) / 1e3;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, std::size_t(share * double(values.size())))];
}

Instant at(double seconds) { return Instant(Micros(std::int64_t(std::llround(seconds * 1e6)))); }

/// One model of the benchmark, and a second run of it that differs by chance alone.
struct Player {
  ModelId model;
  played::StepLaw law;
  std::unique_ptr<played::PlayedMesh> mesh, twin;
  std::map<int, double> foreseen;  // By window, at its end, for the workers that it had; and at its begin.
  std::map<int, double> foreseen_before;
};

Player make_player(int number, std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  Player player;
  player.model = ModelId("m" + std::to_string(number));
  const double billions = std::exp(uniform(std::log(1.0), std::log(14.0)));
  played::StepLaw& law = player.law;
  law.fixed = 0.004 + 0.001 * billions;
  law.per_prompt_token = 8e-6 * billions * uniform(0.8, 1.3);
  law.per_sequence = 1.5e-5 * billions;
  law.per_context = 2e-9 * billions;
  law.flop_per_token = law.weights = 2e9 * billions;
  law.kv_per_token = 3e4 * std::sqrt(billions);
  played::Demand demand;
  demand.input = uniform(200.0, 1'500.0);
  demand.input_spread = uniform(0.4, 1.0);
  demand.output = uniform(10.0, 120.0);
  demand.output_spread = uniform(0.4, 1.0);
  demand.period = uniform(300.0, 1'200.0);
  demand.bursts = random();
  const double prompt = law.fixed * (1.0 + demand.input / 512.0) + law.per_prompt_token * demand.input;
  demand.rate = uniform(1.0, 4.0) / prompt;  // The work of one to four workers.
  demand.ttft_fixed = prompt * uniform(1.0, 5.0);
  demand.ttft_per_token = 3.0 * prompt / demand.input;
  demand.tpot = (law.fixed + 512.0 * law.per_prompt_token) * uniform(1.0, 2.0);
  player.mesh = std::make_unique<played::PlayedMesh>(player.model, law, played::Device{}, demand, random());
  player.twin = std::make_unique<played::PlayedMesh>(player.model, law, played::Device{}, demand, random());
  return player;
}

ModelTable table_of(const Player& player) {
  ModelTable table;
  table.model = player.model;
  table.kv_per_token = Bytes(std::int64_t(player.law.kv_per_token));
  table.segments.push_back({1, Bytes(std::int64_t(player.law.weights))});
  return table;
}

/// The whole play, heard by one oracle.
class Play {
 public:
  Play() : random_(20), core_(options()) {
    for (int i = 0; i < kModels; ++i) players_.push_back(make_player(i, random_));
    core_.start(at(0), out_);
    for (const Player& player : players_) core_.on(table_of(player), at(0), out_);
  }

  void run() {
    for (int tick = 1; tick * 0.5 <= kSeconds; ++tick) {
      const double now = tick * 0.5;
      if (now == kHeldOut) core_.score_anew();
      for (Player& player : players_) {
        if (tick == 1 || tick % 80 == 0) rescale(player);
        hear(player, now);
      }
      out_.clear();
      const double begin = worked_micros();
      core_.wake(Timer{1}, at(now), out_);
      ticks_.push_back((worked_micros() - begin) / kModels);
      if (now >= kHeldOut && std::fmod(now, kWindow) == 0.0) note(int(now / kWindow));
    }
  }

  [[nodiscard]] OracleScore score() const { return core_.score(); }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }

  /// Errors in shares of requests over the windows that were held out: of `pick`, or of the twin if there is none.
  [[nodiscard]] std::vector<double> errors(std::map<int, double> Player::*pick) const {
    std::vector<double> errors;
    for (const Player& player : players_) {
      for (const auto& [number, window] : player.mesh->windows()) {
        const auto twin = player.twin->windows().find(number);
        const auto foreseen = pick == nullptr ? player.foreseen.find(number) : (player.*pick).find(number);
        if (window.requests < 8.0 || twin == player.twin->windows().end()) continue;
        const auto known = player.foreseen.find(number);
        if (known == player.foreseen.end() || (pick != nullptr && foreseen == (player.*pick).end())) continue;
        const double other = pick == nullptr ? twin->second.on_time / twin->second.requests : foreseen->second;
        errors.push_back(std::abs(window.on_time / window.requests - other));
      }
    }
    return errors;
  }

 private:
  static OracleOptions options() {
    OracleOptions o;
    o.hearers = {ActorName("bench")};
    o.confidence = 0.0;  // Means are held against outcomes.
    o.device.flop_per_second = played::Device{}.flop_per_second;
    o.device.bytes_per_second = played::Device{}.bytes_per_second;
    o.device.page = Bytes(std::int64_t(played::Device{}.page));
    return o;
  }

  /// Between half loaded and overloaded, at random: more than an autoscaler would dare.
  void rescale(Player& player) {
    const double full = std::uniform_real_distribution<double>(0.5, 1.2)(random_);
    const int workers = std::max(1, int(std::ceil(player.mesh->load() / full)));
    player.mesh->set_workers(workers);
    player.twin->set_workers(workers);
  }

  void hear(Player& player, double now) {
    player.mesh->play(now);
    player.twin->play(now);
    core_.on(player.mesh->queue_status(), at(now), out_);
    for (const Telemetry& letter : player.mesh->telemetry()) core_.on(letter, at(now), out_);
    core_.on(player.mesh->served(), at(now), out_);
  }

  void note(int next) {
    const auto& forecast = std::get<Forecast>(out_.letters.at(0).message);
    for (Player& player : players_) {
      for (const ModelForecast& f : forecast.models) {
        if (f.model != player.model) continue;
        const double share = f.prefill_attainment.at(std::size_t(player.mesh->workers()) - 1);
        if (next * kWindow > kHeldOut) player.foreseen[next - 1] = share;
        if (next * kWindow < kSeconds) player.foreseen_before[next] = share;
      }
    }
  }

  std::mt19937_64 random_;
  OracleCore core_;
  Outbox out_;
  std::vector<Player> players_;
  std::vector<double> ticks_;
};

void share_rows(const Report& report, const std::string& what, double median, double p90, bool has_target) {
  report.row({what + ", median of |error|", 100.0 * median, "points", has_target ? "Janus: 2.5" : "",
              has_target ? "<= 1.5" : "", !has_target || 100.0 * median <= 1.5});
  report.row({what + ", P90 of |error|", 100.0 * p90, "points", has_target ? "Janus: 19.0" : "",
              has_target ? "<= 8" : "", !has_target || 100.0 * p90 <= 8.0});
}

void quality_rows(const Report& report, const Play& play) {
  const OracleScore score = play.score();
  share_rows(report, "first tokens on time, held-out windows", score.prefill_attainment.error_median,
             score.prefill_attainment.error_p90, true);
  share_rows(report, "later tokens on time, held-out windows", score.decode_attainment.error_median,
             score.decode_attainment.error_p90, true);
  const std::vector<double> chance = play.errors(nullptr);
  share_rows(report, "first tokens, a second run against the first: chance alone", percentile(chance, 0.5),
             percentile(chance, 0.9), false);
  const std::vector<double> after = play.errors(&Player::foreseen);
  share_rows(report, "first tokens, forecast at a window's end", percentile(after, 0.5), percentile(after, 0.9), false);
  const std::vector<double> before = play.errors(&Player::foreseen_before);
  share_rows(report, "first tokens, forecast 10 s ahead", percentile(before, 0.5), percentile(before, 0.9), false);
  const auto demand = [&](const std::string& what, const ForecastScore& s, const std::string& reference) {
    report.row({what + ", P90 of the relative error", 100.0 * s.error_p90, "%", reference, "<= 10",
                s.error_p90 <= 0.10});
  };
  demand("compute", score.compute, "Janus: 24.18 %");
  demand("bandwidth", score.bandwidth, "Janus: 23.24 %");
  report.row({"KV bytes, median of the relative error", 100.0 * score.kv.error_median, "%", "", "", true});
  const auto coverage = [&](const std::string& what, const ForecastScore& s) {
    report.row({"coverage of the 90 % interval, " + what, 100.0 * s.coverage, "%", std::to_string(s.count) + " windows",
                "85 to 95", s.coverage >= 0.85 && s.coverage <= 0.95});
  };
  coverage("first tokens", score.prefill_attainment);
  coverage("later tokens", score.decode_attainment);
  coverage("KV", score.kv);
  coverage("compute", score.compute);
  coverage("bandwidth", score.bandwidth);
}

void time_rows(const Report& report, const Play& play) {
  double sum = 0.0;
  for (const double tick : play.ticks()) sum += tick;
  const double mean = sum / double(play.ticks().size());
  report.row({"one model's forecast in one tick, mean with learning and fits", mean, "us", "", "<= 50", mean <= 50.0});
  report.row({"the same, P99 of ticks", percentile(play.ticks(), 0.99), "us", "", "", true});

  GaussianProcessOptions options;
  options.inputs = 8;
  options.points_max = 128;
  GaussianProcess process(options);
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto draw = [&] {
    std::vector<double> x(8);
    for (double& value : x) value = normal(random);
    return x;
  };
  const auto law = [](const std::vector<double>& x) { return std::sin(x[0]) + 0.3 * x[1]; };
  for (int i = 0; i < 128; ++i) {
    const std::vector<double> x = draw();
    process.add(x, law(x) + 0.1 * normal(random));
  }
  const auto mean_micros = [](int count, const auto& work) {
    work();
    const double begin = worked_micros();
    for (int i = 0; i < count; ++i) work();
    return (worked_micros() - begin) / count;
  };
  const std::vector<double> x = draw();
  double kept = 0.0;
  report.row({"prediction from 128 points", mean_micros(2'000, [&] { kept += process.predict(x).mean; }), "us", "", "",
              std::isfinite(kept)});
  report.row({"one observation into a full window of 128",
              mean_micros(500,
                          [&] {
                            const std::vector<double> next = draw();
                            process.add(next, law(next));
                          }),
              "us", "", "", true});
  report.row({"fit of 10 hyper-parameters to 48 points, one restart", mean_micros(20, [&] { process.fit(1); }) / 1e3,
              "ms", "", "", true});
}

}  // namespace

int main(int argc, char** argv) {
  Report report(argc, argv);
  Play play;
  play.run();
  quality_rows(report, play);
  time_rows(report, play);
}
