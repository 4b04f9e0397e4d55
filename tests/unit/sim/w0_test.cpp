// W0 against what is published of the day that it stands for, and against its definition.
#include "sim/trace/w0.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/trace/w0_apps.hpp"
#include "sim/trace/w0_lengths.hpp"
#include "sim/trace/w0_rates.hpp"

using namespace sangam;
using namespace sangam::sim;

namespace {

/// Generated once for all cases.
const Trace& day() {
  static const Trace trace = w0(1);
  return trace;
}

std::vector<double> ranks_of(const std::vector<std::int64_t>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = double(i + end - 1) / 2.0;
    i = end;
  }
  return ranks;
}

/// Spearman's: Pearson's of the ranks, ties at their mean.
double rank_correlation(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const auto x = ranks_of(a);
  const auto y = ranks_of(b);
  const double mean = double(x.size() - 1) / 2.0;
  double both = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    first += (x[i] - mean) * (x[i] - mean);
    second += (y[i] - mean) * (y[i] - mean);
  }
  return both / std::sqrt(first * second);
}

double share_of_first(std::vector<double> parts, std::size_t count) {
  std::sort(parts.rbegin(), parts.rend());
  return std::accumulate(parts.begin(), parts.begin() + std::ptrdiff_t(count), 0.0) / std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace

TEST_CASE("62 apps on 9 models: 40 on 6 of one device, 16 on 2 of four, 6 on one of sixteen") {
  std::map<int, int> apps;
  std::map<int, std::set<std::string>> models;
  std::map<DayCurve, int> curves;
  std::set<std::string> names;
  int bursty = 0;
  for (const auto& app : w0_apps()) {
    ++apps[app.devices];
    models[app.devices].insert(app.model);
    ++curves[app.curve];
    names.insert(app.name);
    bursty += app.bursts;
  }
  CHECK(names.size() == 62);
  CHECK(apps == std::map<int, int>{{1, 40}, {4, 16}, {16, 6}});
  CHECK(models[1].size() == 6);
  CHECK(models[4].size() == 2);
  CHECK(models[16].size() == 1);
  CHECK(curves == std::map<DayCurve, int>{{DayCurve::office, 34}, {DayCurve::evening, 14}, {DayCurve::flat, 10}, {DayCurve::night, 4}});
  CHECK(bursty == 18);
}

TEST_CASE("by the table, 12 % of apps ask 80 % of requests, 30 % make 80 % of tokens, and prefill is 93 % of these") {
  std::vector<double> requests, tokens;
  double inputs = 0, outputs = 0;
  for (const auto& app : w0_apps()) {
    requests.push_back(app.request_share);
    tokens.push_back(app.request_share * (app.input.mean + app.output.mean));
    inputs += app.request_share * app.input.mean;
    outputs += app.request_share * app.output.mean;
  }
  CHECK(std::accumulate(requests.begin(), requests.end(), 0.0) == doctest::Approx(1.0));
  CHECK(share_of_first(requests, 7) == doctest::Approx(0.80).epsilon(0.001));
  CHECK(share_of_first(tokens, 19) == doctest::Approx(0.80).epsilon(0.001));
  CHECK(inputs + outputs == doctest::Approx(620).epsilon(0.002));
  CHECK(inputs / (inputs + outputs) == doctest::Approx(0.93).epsilon(0.005));
}

TEST_CASE("a day has exactly so many requests within its minutes, and each app its share") {
  const auto& requests = day().requests;
  REQUIRE(requests.size() == 603'000);
  CHECK(requests.front().arrival >= Micros(0));
  CHECK(requests.back().arrival < Seconds(1800));
  CHECK(std::is_sorted(requests.begin(), requests.end(), [](const auto& a, const auto& b) { return a.arrival < b.arrival; }));
  std::vector<double> counts(62);
  for (const auto& request : requests) ++counts[request.app];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = w0_apps()[i].request_share * 603'000;
    CHECK(std::abs(counts[i] - expected) < 5.0 * std::sqrt(expected));
  }
}

TEST_CASE("lengths have the table's means within the caps, and more than half of the answers are short") {
  std::vector<double> inputs(62), outputs(62), counts(62);
  double input = 0, output = 0;
  int brief = 0;
  for (const auto& request : day().requests) {
    input += double(request.input.count());
    output += double(request.output.count());
    brief += request.output <= Tokens(16);
    CHECK_UNARY(request.input >= Tokens(1) && request.input <= Tokens(32'768));
    CHECK_UNARY(request.output >= Tokens(1) && request.output <= Tokens(8'192));
    inputs[request.app] += double(request.input.count());
    outputs[request.app] += double(request.output.count());
    ++counts[request.app];
  }
  CHECK(input / 603'000 == doctest::Approx(576.6).epsilon(0.01));
  CHECK(output / 603'000 == doctest::Approx(43.4).epsilon(0.01));
  CHECK(brief / 603'000.0 == doctest::Approx(0.577).epsilon(0.07));  // Histograms have 0.577; lognormals come to 0.545.
  for (std::size_t i = 0; i < 20; ++i) {  // Those with more than 2,600 requests.
    CHECK(inputs[i] / counts[i] == doctest::Approx(w0_apps()[i].input.mean).epsilon(0.06));
    CHECK(outputs[i] / counts[i] == doctest::Approx(w0_apps()[i].output.mean).epsilon(0.06));
  }
}

TEST_CASE("longer prompts get slightly longer answers") {
  std::vector<std::int64_t> inputs, outputs;
  for (const auto& request : day().requests) {
    if (request.app != 1) continue;
    inputs.push_back(request.input.count());
    outputs.push_back(request.output.count());
  }
  CHECK(rank_correlation(inputs, outputs) == doctest::Approx(0.10).epsilon(0.1));  // 106,000 pairs: sd 0.003.
}

TEST_CASE("the load goes through the day as published: quiet nights, a jump in the morning, a high plateau") {
  // Requests per second by minute, drawn by another program from the same definition; bursts fall elsewhere in each.
  constexpr std::array<double, 30> expected{138, 100, 83,  62,  53,  48,  52,  64,  93,  143, 244, 435, 530, 617, 600,
                                            446, 438, 498, 557, 611, 587, 533, 505, 432, 420, 461, 423, 383, 276, 199};
  std::array<double, 30> minutes{};
  for (const auto& request : day().requests) minutes[std::size_t(request.arrival / Seconds(60))] += 1.0 / 60;
  double off = 0;
  for (std::size_t i = 0; i < minutes.size(); ++i) {
    INFO(i, ": ", minutes[i], " instead of ", expected[i]);
    CHECK(minutes[i] == doctest::Approx(expected[i]).epsilon(0.30));
    off += std::abs(minutes[i] / expected[i] - 1.0) / 30;
  }
  CHECK(off < 0.08);
  CHECK(minutes[11] > 1.4 * minutes[10]);  // The published jump at minutes 11 to 13.
  CHECK(*std::max_element(minutes.begin(), minutes.end()) == doctest::Approx(620).epsilon(0.15));  // And its peak.
}

TEST_CASE("curves hold their value in the middle of the hour and are straight in between") {
  CHECK(curve_at(DayCurve::office, 10.5 * 3600) == doctest::Approx(2.15));
  CHECK(curve_at(DayCurve::office, 11.0 * 3600) == doctest::Approx((2.15 + 1.95) / 2));
  CHECK(curve_at(DayCurve::evening, 0.0) == doctest::Approx((1.25 + 0.75) / 2));
  CHECK(curve_at(DayCurve::night, -3600.0 * 22.5) == doctest::Approx(3.0));
  CHECK(curve_at(DayCurve::flat, 15 * 3600.0) == doctest::Approx(1.12));
}

TEST_CASE("a burst rises in a line, holds, and fades") {
  const RateBurst burst{100.0, 9.0, 4.0, 60.0};
  CHECK(magnification_at(burst, 99.9) == 1.0);
  CHECK(magnification_at(burst, 102.0) == doctest::Approx(5.0));
  CHECK(magnification_at(burst, 104.0) == doctest::Approx(9.0));
  CHECK(magnification_at(burst, 163.9) == doctest::Approx(9.0));
  CHECK(magnification_at(burst, 164.0 + 90.0) == doctest::Approx(1.0 + 8.0 / std::exp(1.0)));
}

TEST_CASE("each bursty app jumps at least twice a day, mostly five times and more within ten seconds") {
  int all = 0, high = 0, rank = 0;
  for (const auto& app : w0_apps()) {
    ++rank;
    Random random(std::uint64_t(rank) * 977);
    const auto drawn = draw_day(app, rank, random);
    CHECK(drawn.bursts.size() >= (app.bursts ? 2 : 0));
    CHECK(drawn.bursts.empty() == !app.bursts);
    double before = -1e9;
    for (const auto& burst : drawn.bursts) {
      CHECK(burst.magnification >= 5.5);
      CHECK(burst.magnification < 10.0);
      const bool alone = burst.start > before + 600;  // Else it may begin on another's height.
      before = burst.start + burst.rise + burst.hold;
      const auto start = std::size_t(burst.start);
      if (!alone || start < 60 || start + 10 >= kDaySeconds) continue;
      const double calm = std::accumulate(&drawn.rate[start - 60], &drawn.rate[start], 0.0) / 60;
      ++all;
      high += drawn.rate[start + 9] >= 5.0F * float(calm);
    }
    CHECK(std::accumulate(drawn.rate.begin(), drawn.rate.end(), 0.0) == doctest::Approx(1.0));
  }
  CHECK(all > 40);
  CHECK(high > all * 85 / 100);  // That other program: 79 of 85.
}

TEST_CASE("a burst holds as long as is asked for in the median, whatever else is drawn") {
  std::vector<double> shorter, longer;
  for (int rank = 1; rank <= 62; ++rank) {
    const App& app = w0_apps()[std::size_t(rank - 1)];
    for (std::uint64_t seed = 0; app.bursts && seed < 6; ++seed) {
      Random one(seed * 977 + std::uint64_t(rank)), other = one, same = one;
      const auto brief = draw_day(app, rank, one, 90.0).bursts;
      const auto lasting = draw_day(app, rank, other, 1'440.0).bursts;
      const auto usual = draw_day(app, rank, same).bursts;
      REQUIRE(brief.size() == lasting.size());
      for (std::size_t i = 0; i < brief.size(); ++i) {
        CHECK(brief[i].start == lasting[i].start);
        CHECK(brief[i].magnification == lasting[i].magnification);
        CHECK(usual[i].hold == doctest::Approx(4.0 * brief[i].hold));
        shorter.push_back(brief[i].hold);
        longer.push_back(lasting[i].hold);
      }
    }
  }
  const auto below = [](const std::vector<double>& holds, double seconds) {
    return double(std::count_if(holds.begin(), holds.end(), [&](double hold) { return hold < seconds; })) / double(holds.size());
  };
  REQUIRE(shorter.size() > 350);  // A standard deviation of a share near 0.5 is below 0.027.
  CHECK(below(shorter, 90.0) == doctest::Approx(0.5).epsilon(0.16));
  CHECK(below(shorter, 180.0) == doctest::Approx(0.876).epsilon(0.06));  // The normal's share below ln 2 / 0.6.
  CHECK(below(longer, 1'440.0) == doctest::Approx(0.5).epsilon(0.16));
}

TEST_CASE("longer bursts take their requests from the calm: an app's share of the day stays") {
  W0Options options;
  options.requests = 100'000;
  std::vector<std::vector<double>> counts;
  for (const double hold : {90.0, 1'440.0}) {
    options.burst_hold_s = hold;
    counts.emplace_back(62);
    for (const auto& request : w0(1, options).requests) ++counts.back()[request.app];
  }
  for (std::size_t app = 0; app < 62; ++app) {
    const double expected = w0_apps()[app].request_share * 100'000;
    for (const auto& count : counts) CHECK(std::abs(count[app] - expected) < 5.0 * std::sqrt(expected));
  }
}

TEST_CASE("with 42.62 % for the first app shares are Zipf's, the first seven ask 80 % and each app makes its tokens") {
  const auto apps = w0_apps_with(0.4262);
  double harmonic = 0.0, seven = 0.0, all = 0.0;
  for (int rank = 1; rank <= 62; ++rank) harmonic += std::pow(rank, -1.5056);  // Where 7 of 62 have 80 %, by another program.
  for (std::size_t i = 0; i < apps.size(); ++i) {
    const App &app = apps[i], &usual = w0_apps()[i];
    CHECK(app.request_share == doctest::Approx(std::pow(double(i + 1), -1.5056) / harmonic).epsilon(0.002));
    CHECK(app.request_share * app.input.mean == doctest::Approx(usual.request_share * usual.input.mean));
    CHECK(app.request_share * app.output.mean == doctest::Approx(usual.request_share * usual.output.mean));
    CHECK_UNARY(app.output.mean >= 1.0 && app.input.mean < 32'768.0);
    if (i < 7) seven += app.request_share;
    all += app.request_share;
  }
  CHECK(seven == doctest::Approx(0.80).epsilon(1e-6));
  CHECK(all == doctest::Approx(1.0));
}

TEST_CASE("with the share that the first app has anyway the shares are the table's") {
  const auto apps = w0_apps_with(w0_apps()[0].request_share);
  for (std::size_t i = 0; i < apps.size(); ++i) {
    CHECK(apps[i].request_share == doctest::Approx(w0_apps()[i].request_share).epsilon(0.005));  // Which is rounded.
  }
}

TEST_CASE("the bounds of the first app's share can be met, and shares fall with the rank") {
  for (const double share : {kFirstShareLeast, kFirstShareMost}) {
    const auto apps = w0_apps_with(share);
    CHECK(apps[0].request_share == doctest::Approx(share).epsilon(1e-6));
    for (std::size_t i = 1; i < apps.size(); ++i) {
      CHECK(apps[i].request_share < apps[i - 1].request_share);
      CHECK_UNARY(apps[i].output.mean >= 1.0 && apps[i].input.mean < 32'768.0);
    }
  }
}

TEST_CASE("a day with another first app has as many tokens, and that app's requests") {
  W0Options options;
  options.requests = 100'000;
  options.first_share = 0.4262;
  double first = 0, tokens = 0;
  for (const auto& request : w0(1, options).requests) {
    first += request.app == 0;
    tokens += double((request.input + request.output).count());
  }
  CHECK(std::abs(first - 42'620) < 5.0 * std::sqrt(42'620.0));
  CHECK(tokens / 100'000 == doctest::Approx(620).epsilon(0.03));
}

TEST_CASE("the day that results are published of stays as it is, request by request") {
  // Sums over the file that an earlier version wrote, made by another program.
  std::int64_t arrivals = 0, inputs = 0, outputs = 0, first = 0;
  std::uint64_t hash = 0;  // FNV's step over arrival in us, app, input, output.
  const auto mix = [&](std::int64_t value) { hash = (hash ^ std::uint64_t(value)) * 1'099'511'628'211; };
  for (const auto& request : day().requests) {
    arrivals += request.arrival.count();
    inputs += request.input.count();
    outputs += request.output.count();
    first += request.app == 0;
    for (const std::int64_t value : {request.arrival.count(), std::int64_t(request.app), request.input.count(), request.output.count()}) mix(value);
  }
  CHECK(arrivals == 659'682'463'638'255);
  CHECK(inputs == 347'379'148);
  CHECK(outputs == 26'062'851);
  CHECK(first == 182'193);
  CHECK(hash == 0x15e7'0628'0a62'9331);
}

TEST_CASE("the same seed is the same day, another one another day") {
  W0Options brief;
  brief.requests = 2'000;
  brief.minutes = 1.0;
  const auto a = w0(5, brief), b = w0(5, brief), c = w0(6, brief);
  const auto same = [](const Trace& x, const Trace& y) {
    return std::equal(x.requests.begin(), x.requests.end(), y.requests.begin(), [](const auto& p, const auto& q) {
      return p.arrival == q.arrival && p.app == q.app && p.input == q.input && p.output == q.output;
    });
  };
  CHECK(same(a, b));
  CHECK_FALSE(same(a, c));
  CHECK(a.requests.back().arrival < Seconds(60));
}
