// Options to a scenario, a progress bar, and the report.
#include "cli/simulate.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <set>

#include "actors/scheduler/policies.hpp"
#include "cli/profile/profile_file.hpp"
#include "cli/progress_line.hpp"
#include "cli/report_files.hpp"
#include "cli/what_if.hpp"
#include "sim/report/figures.hpp"
#include "sim/report/report.hpp"
#include "sim/report/report_json.hpp"
#include "sim/report/svg.hpp"
#include "sim/report/table.hpp"
#include "sim/trace/trace_file.hpp"
#include "sim/trace/w0.hpp"
#include "sim/trace/w0_apps.hpp"
#include "sim/world/controls.hpp"
#include "sim/world/scenario.hpp"

namespace sangam {
namespace {

constexpr double kRequestsMax = 1e7;  // Of a what-if; a gigabyte of records.

Result<sim::Trace> read(const SimulateOptions& options) {
  auto trace = options.trace.empty() ? Result<sim::Trace>(sim::w0(options.seed)) : sim::read_trace(options.trace);
  if (!trace) return trace;
  sim::TraceScaling scaling;
  scaling.rate = options.rate;
  scaling.seed = options.seed;
  return part_of(std::move(*trace), options.part, scaling, options.trace.empty() ? "W0" : options.trace);
}

/// "16=24": so many workers of so many devices.
Result<std::pair<std::int64_t, std::int64_t>> parse_workers(const std::string& text) {
  std::int64_t devices = 0;
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, devices);
  const bool has_sign = first.ec == std::errc{} && first.ptr != end && *first.ptr == '=';
  const auto second = has_sign ? std::from_chars(first.ptr + 1, end, count) : first;
  if (!has_sign || second.ec != std::errc{} || second.ptr != end || devices < 1 || count < 1 || count > 100'000) {
    return make_error(ErrorCode::invalid_input,
                      "--workers " + text + ": write DEVICES=COUNT, both at least 1, as 16=24");
  }
  return std::pair(devices, count);
}

/// One fine-tune of the base for each app of a trace that is not W0's.
Result<void> set_models(sim::Scenario& scenario, const sim::Trace& trace, const std::string& base_name) {
  const auto& apps = sim::w0_apps();
  const bool is_w0 = std::equal(trace.apps.begin(), trace.apps.end(), apps.begin(), apps.end(),
                                [](const std::string& name, const sim::App& app) { return name == app.name; });
  if (is_w0) return {};
  std::string known;
  for (const sim::BaseSpec& base : sim::w0_bases()) {
    known += (known.empty() ? "" : ", ") + base.name;
    if (base.name != base_name) continue;
    scenario.models.clear();
    scenario.clients.models.clear();
    for (const std::string& app : trace.apps) {
      scenario.models.push_back(sim::fine_tune(ModelId(app), base, scenario.device));
      scenario.clients.models.emplace_back(app);
    }
    return {};
  }
  return make_error(ErrorCode::invalid_input, "--base " + base_name + " is not known; use one of " + known);
}

/// The profile that is called as the app is, else all profiles in turn.
Result<void> set_profiles(sim::Scenario& scenario, const sim::Trace& trace, const std::vector<std::string>& places) {
  std::vector<Profile> profiles;
  for (const std::string& place : places) {
    auto read = read_profiles(place);
    if (!read) return read.error();
    for (Profile& one : *read) {
      const bool is_known = std::any_of(profiles.begin(), profiles.end(), [&](const Profile& known) { return known.model == one.model; });
      if (is_known) return make_error(ErrorCode::invalid_input, "--profile " + place + ": " + one.model.text() + " has a profile already; name each model once");
      profiles.push_back(std::move(one));
    }
  }
  scenario.models.clear();
  scenario.clients.models.clear();
  std::size_t turn = 0;
  double request_us = 0.0;
  for (const std::string& app : trace.apps) {
    const auto named = std::find_if(profiles.begin(), profiles.end(), [&](const Profile& profile) { return profile.model.text() == app; });
    const Profile& profile = named == profiles.end() ? profiles[turn++ % profiles.size()] : *named;
    request_us = std::max(request_us, profile.request_us);
    sim::ModelSpec model = profile.spec();
    model.id = ModelId(app);
    scenario.models.push_back(model);
    scenario.clients.models.emplace_back(app);
  }
  if (request_us > 0.0) scenario.letter_takes = sim::letter_takes_of(request_us);
  return {};
}

Result<sim::Scenario> scenario_of(const SimulateOptions& options, const sim::Trace& trace) {
  sim::Scenario scenario = sim::w0_scenario();
  scenario.time_scale = options.time_scale;
  scenario.clients.slo_factor = options.slo;
  scenario.clients.requeue_when_late = !options.refuse;
  scenario.autoscaler.sizes.attainment = options.attainment;
  scenario.shared_share = options.shared;
  const auto dispatch = dispatch_policy(options.dispatch);
  if (!dispatch) return dispatch.error();
  scenario.scheduler.policy = *dispatch;
  scenario.scheduler.seed = options.seed;
  const auto set = options.profiles.empty() ? set_models(scenario, trace, options.base) : set_profiles(scenario, trace, options.profiles);
  if (!set) return set.error();
  if (!options.workers.empty()) scenario.workers.clear();
  for (const std::string& text : options.workers) {
    const auto workers = parse_workers(text);
    if (!workers) return workers.error();
    scenario.workers[workers->first] += workers->second;
  }
  for (const sim::ModelSpec& model : scenario.models) {
    if (scenario.workers.contains(model.devices)) continue;
    return make_error(ErrorCode::invalid_input, "no worker has " + std::to_string(model.devices) +
                                                    " devices, which " + model.id.text() +
                                                    " needs; add --workers " + std::to_string(model.devices) + "=COUNT");
  }
  return scenario;
}

/// What the fleet did with its models.
std::string models_of(const sim::SimulatedRun& run) {
  const auto wakes = double(std::max<std::int64_t>(run.wake_ups.count, 1));
  char text[200];
  std::snprintf(text, sizeof text, "%s: %.2f models on a worker in use; %lld wake-ups of %.2f s and %.1f GB in the mean\n",
                run.measured.title.c_str(), run.models_on, static_cast<long long>(run.wake_ups.count),
                double(run.wake_ups.took.count()) / 1e6 / wakes, double(run.wake_ups.copied.count()) / 1e9 / wakes);
  return text;
}

std::string json_of_all(const std::vector<sim::Report>& reports) {
  if (reports.size() == 1) return sim::json_of(reports.front());
  std::string text;
  for (const sim::Report& report : reports) text += (text.empty() ? "[" : ",\n") + sim::json_of(report);
  return text + "]";
}

Result<void> show(const std::vector<sim::Report>& reports, const std::string& models, const SimulateOptions& options) {
  std::cout << (reports.size() == 1 ? sim::table_of(reports.front()) : sim::compare(reports)) << "\n" << models;
  if (const auto written = write_report(options.json, json_of_all(reports)); !written) return written.error();
  return write_report(options.svg, options.svg.empty() ? "" : sim::svg_of(reports));
}

/// The snapshot of a file, or of the mesh at an address.
Result<Snapshot> snapshot_at(const std::string& place, const std::string& key) {
  if (place.find("://") == std::string::npos) return read_snapshot(place);
  const auto base = parse_http_base(place);
  if (!base) return base.error();
  return take_snapshot(*base, key);
}

Result<sim::Report> play(const Situation& situation, const std::string& title, const SimulateOptions& options) {
  auto scenario = scenario_of(situation);
  if (!scenario) return scenario.error();
  scenario->title = title;
  ProgressLine line;
  scenario->progress = [&](double share) { line.show(title + " " + progress_bar(share)); };
  return sim::make_report(sim::simulate(*scenario, trace_of(situation, options.seconds, options.seed)).measured);
}

/// As it is, and with all changes together.
Result<void> compare_what_if(const SimulateOptions& options) {
  const auto snapshot = snapshot_at(options.what_if, options.key);
  if (!snapshot) return snapshot.error();
  auto situation = situation_of(*snapshot);
  if (!situation) return situation.error();
  Situation changed = *situation;
  std::string title;
  for (const std::string& change : options.changes) {
    if (auto applied = apply_change(changed, change); !applied) return applied;
    title += (title.empty() ? "" : ", ") + change;
  }
  for (const Situation* one : {&*situation, &changed}) {
    double requests = 0.0;
    for (const SnapshotModel& model : one->models) requests += model.traffic->requests_per_second * options.seconds;
    if (requests > kRequestsMax) {
      return make_error(ErrorCode::invalid_input, "that would be " + sim::grouped(std::int64_t(std::min(requests, 1e18))) + " requests; make --seconds or the rate smaller");
    }
  }
  std::vector<sim::Report> reports;
  const auto now = play(*situation, "now", options);
  if (!now) return now.error();
  reports.push_back(*now);
  if (!options.changes.empty()) {
    const auto then = play(changed, title, options);
    if (!then) return then.error();
    reports.push_back(*then);
  }
  return show(reports, "", options);
}

}  // namespace

Result<void> simulate_and_report(const SimulateOptions& options) {
  if (auto writable = check_writable({options.json, options.svg}); !writable) return writable;
  if (!options.what_if.empty()) return compare_what_if(options);
  const auto trace = read(options);
  if (!trace) return trace.error();
  auto scenario = scenario_of(options, *trace);
  if (!scenario) return scenario.error();
  std::vector<sim::Report> reports;
  std::string models;
  for (const std::string& name : options.controls) {
    sim::Scenario own = *scenario;
    if (const auto set = sim::set_control(own, name); !set) return set.error();
    own.title = name;
    ProgressLine line;
    own.progress = [&](double share) { line.show(name + " " + progress_bar(share)); };
    const sim::SimulatedRun run = sim::simulate(own, *trace);
    models += models_of(run);
    reports.push_back(sim::make_report(run.measured));
  }
  return show(reports, models, options);
}

}  // namespace sangam
