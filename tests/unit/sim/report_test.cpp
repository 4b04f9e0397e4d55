// Reports against what a calculator says of a handful of requests.
#include "sim/report/report.hpp"

#include <doctest/doctest.h>

#include <array>
#include <boost/json.hpp>

#include "sim/report/chart.hpp"
#include "sim/report/figures.hpp"
#include "sim/report/report_json.hpp"
#include "sim/report/svg.hpp"
#include "sim/report/table.hpp"

using namespace sangam;
using namespace sangam::sim;

namespace {

/// Arrives at `second`; due after 100 ms and then each 50 ms.
RequestRecord request(int second, Tokens output, Millis ttft, Millis whole) {
  RequestRecord record;
  record.arrival = Seconds(second);
  record.ttft = ttft;
  record.end = record.arrival + whole;
  record.input = Tokens(10);
  record.output = output;
  record.ttft_slo = Millis(100);
  record.tpot_slo = Millis(50);
  return record;
}

RequestRecord refused(int second, Tokens output) {
  auto record = request(second, output, Millis(0), Millis(1));
  record.ttft = Micros(-1);
  record.late = output;
  record.code = ErrorCode::cannot_be_on_time;
  return record;
}

/// Two apps, 120 seconds, four devices of which two are used, then one.
MeasuredRun two_apps() {
  MeasuredRun run;
  run.title = "two <apps>";
  run.apps = {"chat", "code", "silent"};
  run.duration = Seconds(120);
  run.devices = {{Seconds(0), 2.0}, {Seconds(90), 1.0}};
  run.devices_total = 4.0;
  run.time_scale = 48.0;
  run.records = {
      request(0, Tokens(11), Millis(80), Millis(480)),    // On time; 40 ms between tokens.
      request(30, Tokens(11), Millis(100), Millis(600)),  // On time to the millisecond.
      request(65, Tokens(11), Millis(130), Millis(530)),  // First token late, the last on time.
      refused(70, Tokens(7)),
      request(119, Tokens(1), Millis(90), Millis(90)),
  };
  run.records[2].late = Tokens(3);
  run.records[3].app = run.records[4].app = 1;
  return run;
}

}  // namespace

TEST_CASE("a token is on time by its place in the answer") {
  LateTokens tokens({Millis(100), Millis(50)});
  tokens.add(Millis(100));    // 1st, due after 100.
  tokens.add(Micros(150'001)); // 2nd, due after 150.
  tokens.add(Millis(240), 3);  // 3rd to 5th, due after 200, 250, 300.
  CHECK(tokens.late(Tokens(5), false) == Tokens(2));
  CHECK(tokens.late(Tokens(8), false) == Tokens(5));  // Three never came.
  CHECK(tokens.late(Tokens(8), true) == Tokens(8));
  CHECK(ttft_slo_of(Tokens(1000)) == Millis(300));
}

TEST_CASE("shares, goodput and attainment are those of the records") {
  const auto report = make_report(two_apps());
  CHECK(report.all.requests == 5);
  CHECK(report.all.output == Tokens(41));
  CHECK(report.all.late == Tokens(10));
  CHECK(report.all.token_share().value() == doctest::Approx(31.0 / 41));
  CHECK(report.all.request_share().value() == doctest::Approx(3.0 / 5));
  CHECK(report.all.e2e_share().value() == doctest::Approx(4.0 / 5));
  CHECK(report.all.ttft_share().value() == doctest::Approx(3.0 / 5));
  CHECK(report.all.tpot_share().value() == doctest::Approx(3.0 / 4));  // The refused one had asked for several.
  CHECK(report.rate_of(report.all.on_time) == doctest::Approx(3.0 / 120));
  CHECK(report.failures == std::map<ErrorCode, std::size_t>{{ErrorCode::cannot_be_on_time, 1}});
  CHECK(report.ttft.p50.value() == 90.0);  // Of 80, 90, 100, 130: the second by nearest rank.
  CHECK(report.ttft.p90.value() == 130.0);
  CHECK(report.tpot.most.value() == 50.0);
  CHECK(report.tpot.p50.value() == 40.0);  // Of 40, 40, 50.
}

TEST_CASE("apps count alike in the mean, and silent ones not at all") {
  const auto report = make_report(two_apps());
  REQUIRE(report.apps.size() == 2);
  CHECK(report.app_share_mean().value() == doctest::Approx((30.0 / 33 + 1.0 / 8) / 2));
  CHECK(report.worst_app()->name == "code");
}

TEST_CASE("device-hours are the area under the devices in use, in hours of the service's day") {
  const auto report = make_report(two_apps());
  CHECK(report.device_hours.value() == doctest::Approx((2 * 90 + 1 * 30) * 48 / 3600.0));
  CHECK(report.device_hours_static.value() == doctest::Approx(4 * 120 * 48 / 3600.0));
  auto run = two_apps();
  run.devices.clear();
  CHECK_FALSE(make_report(run).device_hours.has_value());
}

TEST_CASE("windows part the run by arrival, each request in one") {
  const auto report = make_report(two_apps());
  REQUIRE(report.windows.size() == 12);  // Of ten seconds.
  CHECK(report.windows[6].outcome.requests == 1);
  CHECK(report.windows[7].outcome.token_share().value() == 0.0);
  CHECK_FALSE(report.windows[1].outcome.token_share().has_value());
  CHECK(report.windows[0].rate_of(report.windows[0].outcome.on_time) == doctest::Approx(0.1));
  CHECK(report.windows[8].devices.value() == doctest::Approx(2.0));
  CHECK(report.windows[9].devices.value() == doctest::Approx(1.0));
  std::size_t all = 0;
  for (const auto& window : report.windows) all += window.outcome.requests;
  CHECK(all == 5);
}

TEST_CASE("windows are round times, and the rest joins the last one") {
  const auto windows = [](Micros duration) {
    MeasuredRun run;
    run.duration = duration;
    return make_report(run).windows;
  };
  CHECK(windows(Seconds(1800)).size() == 30);
  CHECK(windows(Seconds(1800) - Millis(4)).size() == 30);
  CHECK(windows(Seconds(1805)).size() == 30);
  CHECK(windows(Seconds(1805)).back().width == Seconds(65));
  CHECK(windows(Seconds(86'400)).size() == 96);  // Of a quarter of an hour.
  CHECK(windows(Millis(1)).size() == 1);
}

TEST_CASE("a run without requests has a report without figures") {
  MeasuredRun run;
  run.title = "nothing";
  const auto report = make_report(run);
  CHECK_FALSE(report.all.token_share().has_value());
  CHECK_FALSE(report.ttft.p99.has_value());
  CHECK(report.worst_app() == nullptr);
  CHECK(table_of(report).find("tokens on time") != std::string::npos);
  CHECK_FALSE(svg_of(std::array{report}).empty());
  CHECK(boost::json::parse(json_of(report)).at("all").at("tokens_on_time_share").is_null());
}

TEST_CASE("the JSON has the figures, by window and by app") {
  const auto json = boost::json::parse(json_of(make_report(two_apps())));
  CHECK(json.at("all").at("tokens_on_time_share").as_double() == doctest::Approx(31.0 / 41));
  CHECK(json.at("failures").at("cannot_be_on_time").as_int64() == 1);
  CHECK(json.at("windows").as_array().size() == 12);
  CHECK(json.at("apps").at(1).at("name").as_string() == "code");
  CHECK(json.at("app_worst").as_string() == "code");
  CHECK(json.at("device_hours").as_double() == doctest::Approx(2.8));
}

TEST_CASE("tables show the figures, and two reports side by side") {
  auto other = two_apps();
  other.title = "other";
  other.devices.clear();
  other.records.pop_back();
  const std::array both{make_report(two_apps()), make_report(other)};
  const auto text = compare(both);
  INFO(text);
  CHECK(text.find("two <apps>") != std::string::npos);
  CHECK(text.find("75.61 %") != std::string::npos);  // 31 of 41.
  CHECK(text.find("75.00 %") != std::string::npos);  // 30 of 40.
  CHECK(text.find("ended by cannot_be_on_time") != std::string::npos);
  CHECK(text.find("56.25 %") != std::string::npos);  // 2.8 hours instead of 6.4.
  CHECK(table_of(both[0]).find("▁") != std::string::npos);
}

TEST_CASE("pictures are XML whatever the title, and leave a gap where nothing was asked") {
  const std::array reports{make_report(two_apps())};
  const auto svg = svg_of(reports);
  CHECK(svg.find("two &lt;apps&gt;") != std::string::npos);
  CHECK(svg.find("Devices in use") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  std::size_t stretches = 0;
  for (auto at = svg.find("punctual stroke"); at != svg.npos; at = svg.find("punctual stroke", at + 1)) ++stretches;
  CHECK(stretches == 4);  // Windows 0, 3, 6 and 7, 11.
}

TEST_CASE("axes end on round marks") {
  const auto axis = round_axis(0.0, 674.0, 4);
  CHECK(axis.step == 200.0);
  CHECK(axis.high == 800.0);
  CHECK(round_axis(0.0, 0.0, 4).high == 1.0);
  CHECK(round_axis(87.0, 100.0, 5).low == doctest::Approx(85.0));
  CHECK(round_axis(0.0, 0.03, 4).step == doctest::Approx(0.01));
}

TEST_CASE("numbers are written for people") {
  CHECK(grouped(603'000) == "603,000");
  CHECK(grouped(-1'000) == "-1,000");
  CHECK(grouped(999) == "999");
  CHECK(percent(0.97804) == "97.80 %");
  CHECK(span_text(Seconds(1800)) == "30 min");
  CHECK(span_text(Millis(1500)) == "1.5 s");
  CHECK(span_text(Seconds(86'400)) == "24 h");
  const std::array<std::optional<double>, 3> values{0.0, std::nullopt, 1.0};
  CHECK(spark_line(values, 0.0, 1.0) == "▁ █");
  CHECK(right("ä", 3) == "  ä");
}
