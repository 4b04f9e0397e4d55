// Fields of a report by name.
#include "sim/report/report_json.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <boost/json.hpp>

namespace sangam::sim {
namespace {

namespace json = boost::json;

json::value or_null(std::optional<double> value) {
  return value ? json::value(*value) : json::value(nullptr);
}

double seconds(Micros time) {
  return std::chrono::duration<double>(time).count();
}

json::object to_json(const Outcome& outcome) {
  return {{"requests", outcome.requests},
          {"requests_on_time", outcome.on_time},
          {"requests_on_time_share", or_null(outcome.request_share())},
          {"requests_e2e_on_time", outcome.e2e_on_time},
          {"prompt_tokens", outcome.input.count()},
          {"answer_tokens", outcome.output.count()},
          {"answer_tokens_late", outcome.late.count()},
          {"tokens_on_time_share", or_null(outcome.token_share())},
          {"ttft_on_time_share", or_null(outcome.ttft_share())},
          {"tpot_on_time_share", or_null(outcome.tpot_share())}};
}

json::object to_json(const Percentiles& percentiles) {
  return {{"p50", or_null(percentiles.p50)}, {"p90", or_null(percentiles.p90)}, {"p99", or_null(percentiles.p99)}, {"max", or_null(percentiles.most)}};
}

json::array apps_of(const Report& report) {
  json::array apps;
  for (const auto& app : report.apps) {
    auto object = to_json(app.outcome);
    object["name"] = app.name;
    apps.push_back(std::move(object));
  }
  return apps;
}

json::array windows_of(const Report& report) {
  json::array windows;
  for (const auto& window : report.windows) {
    auto object = to_json(window.outcome);
    object["start_s"] = seconds(window.start);
    object["width_s"] = seconds(window.width);
    object["load_rps"] = window.rate_of(window.outcome.requests);
    object["goodput_rps"] = window.rate_of(window.outcome.on_time);
    object["goodput_e2e_rps"] = window.rate_of(window.outcome.e2e_on_time);
    object["devices"] = or_null(window.devices);
    windows.push_back(std::move(object));
  }
  return windows;
}

}  // namespace

std::string json_of(const Report& report) {
  json::object failures;
  for (const auto& [code, count] : report.failures) failures[boost::describe::enum_to_string(code, "unknown")] = count;
  const auto* worst = report.worst_app();
  const json::object object = {
      {"format", 1},
      {"title", report.title},
      {"duration_s", seconds(report.duration)},
      {"time_scale", report.time_scale},
      {"all", to_json(report.all)},
      {"load_rps", report.rate_of(report.all.requests)},
      {"goodput_rps", report.rate_of(report.all.on_time)},
      {"goodput_e2e_rps", report.rate_of(report.all.e2e_on_time)},
      {"ttft_ms", to_json(report.ttft)},
      {"tpot_ms", to_json(report.tpot)},
      {"failures", std::move(failures)},
      {"device_hours", or_null(report.device_hours)},
      {"device_hours_static", or_null(report.device_hours_static)},
      {"app_tokens_on_time_share_mean", or_null(report.app_share_mean())},
      {"app_worst", worst == nullptr ? json::value(nullptr) : json::value(worst->name)},
      {"apps", apps_of(report)},
      {"windows", windows_of(report)},
  };
  return json::serialize(object) + "\n";
}

}  // namespace sangam::sim
