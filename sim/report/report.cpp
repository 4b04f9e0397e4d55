// From records to shares, rates and percentiles.
#include "sim/report/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sangam::sim {
namespace {

Share share(double part, double whole) {
  return whole > 0.0 ? Share(part / whole) : std::nullopt;
}

double seconds_of(Micros time) {
  return std::chrono::duration<double>(time).count();
}

bool ended(const RequestRecord& record) {
  return record.code == ErrorCode::none;
}

/// Mean time between the tokens of a request that ended with more than one.
Micros tpot_of(const RequestRecord& record) {
  return (record.end - record.arrival - record.ttft) / (record.output.count() - 1);
}

bool has_tpot(const RequestRecord& record) {
  return ended(record) && record.ttft >= Micros(0) && record.output > Tokens(1);
}

Percentiles percentiles_of(std::vector<Micros> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double part) {
    const auto rank = std::size_t(std::ceil(part * double(samples.size())));
    return double(samples[std::max<std::size_t>(rank, 1) - 1].count()) / 1e3;
  };
  return {at(0.50), at(0.90), at(0.99), at(1.0)};
}

Micros window_width(Micros duration) {
  constexpr std::array<int, 15> kRound{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14'400};  // Seconds.
  constexpr int kLeast = 12;
  constexpr int kMost = 120;
  Micros width = Seconds(60);
  if (duration < kLeast * width) {
    for (const int round : kRound) {
      if (round == 1 || duration >= kLeast * Seconds(round)) width = Seconds(round);
    }
  }
  for (const int round : kRound) {
    if (duration > kMost * width) width = std::max<Micros>(width, Seconds(round));
  }
  return width;
}

/// Device-microseconds in [from, until): each entry of the series holds until the next one.
double device_time(const std::vector<DevicesInUse>& series, Micros from, Micros until) {
  double sum = 0.0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Micros begin = std::max(series[i].time, from);
    const Micros end = i + 1 < series.size() ? std::min(series[i + 1].time, until) : until;
    if (end > begin) sum += series[i].devices * double((end - begin).count());
  }
  return sum;
}

std::vector<WindowOutcome> empty_windows(const MeasuredRun& run, Micros duration) {
  std::vector<WindowOutcome> windows;
  const Micros width = window_width(duration);
  const auto count = std::max<std::int64_t>(1, (duration + width / 2) / width);
  for (std::int64_t i = 0; i < count; ++i) {
    WindowOutcome window;
    window.start = i * width;
    window.width = (i + 1 < count ? window.start + width : duration) - window.start;
    if (!run.devices.empty()) {
      window.devices = device_time(run.devices, window.start, window.start + window.width) / double(window.width.count());
    }
    windows.push_back(window);
  }
  return windows;
}

void add_records(const MeasuredRun& run, Report& report) {
  std::vector<Micros> ttft, tpot;
  std::vector<Outcome> apps(run.apps.size());
  const Micros width = report.windows.front().width;
  for (const auto& record : run.records) {
    report.all.add(record);
    apps[record.app].add(record);
    const auto window = std::size_t(record.arrival / width);
    report.windows[std::min(window, report.windows.size() - 1)].outcome.add(record);
    if (!ended(record)) ++report.failures[record.code];
    if (record.ttft >= Micros(0)) ttft.push_back(record.ttft);
    if (has_tpot(record)) tpot.push_back(tpot_of(record));
  }
  report.ttft = percentiles_of(std::move(ttft));
  report.tpot = percentiles_of(std::move(tpot));
  for (std::size_t i = 0; i < apps.size(); ++i) {
    if (apps[i].requests > 0) report.apps.push_back({run.apps[i], apps[i]});
  }
}

}  // namespace

void Outcome::add(const RequestRecord& record) {
  ++requests;
  input += record.input;
  output += record.output;
  late += record.late;
  on_time += ended(record) && record.late == Tokens(0);
  const Micros due = record.ttft_slo + (record.output.count() - 1) * record.tpot_slo;
  e2e_on_time += ended(record) && record.end - record.arrival <= due;
  ttft_on_time += ended(record) && record.ttft >= Micros(0) && record.ttft <= record.ttft_slo;
  tpot_asked += record.output > Tokens(1);
  tpot_on_time += has_tpot(record) && tpot_of(record) <= record.tpot_slo;
}

Share Outcome::token_share() const {
  return share(double((output - late).count()), double(output.count()));
}
Share Outcome::request_share() const {
  return share(double(on_time), double(requests));
}
Share Outcome::e2e_share() const {
  return share(double(e2e_on_time), double(requests));
}
Share Outcome::ttft_share() const {
  return share(double(ttft_on_time), double(requests));
}
Share Outcome::tpot_share() const {
  return share(double(tpot_on_time), double(tpot_asked));
}

double WindowOutcome::rate_of(std::size_t count) const {
  return double(count) / seconds_of(width);
}

double Report::rate_of(std::size_t count) const {
  return double(count) / seconds_of(duration);
}

Share Report::app_share_mean() const {
  double sum = 0.0, counted = 0.0;
  for (const auto& app : apps) {
    const auto part = app.outcome.token_share();
    sum += part.value_or(0.0);
    counted += part.has_value();
  }
  return share(sum, counted);
}

const AppOutcome* Report::worst_app() const {
  const AppOutcome* worst = nullptr;
  for (const auto& app : apps) {
    const auto part = app.outcome.token_share();
    if (part && (worst == nullptr || *part < *worst->outcome.token_share())) worst = &app;
  }
  return worst;
}

Report make_report(const MeasuredRun& run) {
  Report report;
  report.title = run.title;
  report.time_scale = run.time_scale;
  report.duration = std::max<Micros>(run.duration, Seconds(1));
  for (const auto& record : run.records) report.duration = std::max(report.duration, record.arrival);
  report.windows = empty_windows(run, report.duration);
  add_records(run, report);
  const double hours = report.time_scale / 3600e6;  // Of the service's day, in a microsecond of the run.
  if (!run.devices.empty()) report.device_hours = device_time(run.devices, Micros(0), report.duration) * hours;
  if (run.devices_total > 0.0) report.device_hours_static = run.devices_total * double(report.duration.count()) * hours;
  return report;
}

}  // namespace sangam::sim
