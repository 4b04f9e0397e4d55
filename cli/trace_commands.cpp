// Options of the workload commands.
#include "cli/trace_commands.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/profile/profile_command.hpp"
#include "cli/replay.hpp"
#include "cli/signals.hpp"
#include "cli/simulate.hpp"
#include "sim/report/trace_table.hpp"
#include "sim/trace/trace_file.hpp"
#include "sim/trace/w0.hpp"
#include "sim/trace/w0_apps.hpp"
#include "sim/world/controls.hpp"

namespace sangam {
namespace {

constexpr std::size_t kRequestsMax = 100'000'000;  // 3 GB in memory.

struct GenerateOptions {
  bool w0 = false;  ///< There is no other one yet, but the command says which.
  std::uint64_t seed = 1;
  sim::W0Options day;
  std::string output;
};

CLI::App* add_generate(CLI::App& group, GenerateOptions& options) {
  auto* command = group.add_subcommand("generate", "Write a generated trace");
  command->add_flag("--w0", options.w0, "The day of a service with 62 apps on 9 models")->required();
  command->add_option("--seed", options.seed, "The same seed gives the same trace")->capture_default_str();
  command->add_option("--requests", options.day.requests, "How many")->check(CLI::Range(std::size_t{1}, kRequestsMax))->capture_default_str();
  command->add_option("--minutes", options.day.minutes, "What the day is pressed into")->check(CLI::Range(0.01, 1e6))->capture_default_str();
  command->add_option("--burst-hold", options.day.burst_hold_s, "Seconds of the day that a jump of an app's rate holds, in the median")
      ->check(CLI::Range(1.0, 86'400.0))
      ->type_name("S")
      ->capture_default_str();
  command->add_option("--first-share", options.day.first_share, "Of requests, the first app's; 0.3 where it is not given, 0.426 is Zipf's law")
      ->check(CLI::Range(sim::kFirstShareLeast, sim::kFirstShareMost))
      ->type_name("SHARE");
  command->add_option("-o,--output", options.output, "Where to; .gz compresses")->required()->type_name("FILE.csv.gz");
  return command;
}

CLI::App* add_show(CLI::App& group, std::string& file) {
  auto* command = group.add_subcommand("show", "What a trace asks for");
  command->add_option("trace", file, "CSV, plain or gzip, or Mooncake's JSON lines")->required()->type_name("FILE");
  return command;
}

void add_replay_load(CLI::App& command, ReplayOptions& options) {
  command.add_option("trace", options.trace, "CSV, plain or gzip, or Mooncake's JSON lines")->required()->type_name("TRACE");
  command.add_option("--models", options.models, "Who answers for which app, * for all others; without it models are taken in turn")
      ->type_name("APP=MODEL")
      ->delimiter(',');
  command.add_option("--rate", options.rate, "Times as many requests, thinned or multiplied")->capture_default_str();
  command.add_option("--time", options.time, "Times as fast")->capture_default_str();
  command.add_option("--length", options.length, "Prompts and answers times as long")->capture_default_str();
  command.add_option("--from", options.part.from_s, "Begin at this second of the trace")->check(CLI::Range(0.0, 1e9))->capture_default_str();
  command.add_option("--for", options.part.for_s, "So many seconds of the trace; 0: to its end")->check(CLI::Range(0.0, 1e9))->capture_default_str();
  command.add_option("--limit", options.part.limit, "So many requests at most; 0: all")->capture_default_str();
  command.add_option("--seed", options.seed, "For thinning and prompts")->capture_default_str();
}

CLI::App* add_replay(CLI::App& app, ReplayOptions& options) {
  auto* command = app.add_subcommand("replay", "Send a trace to a running mesh as it was recorded, and report what was on time");
  add_replay_load(*command, options);
  command->add_option("--url", options.url, "The mesh")->capture_default_str();
  command->add_option("--key", options.key, "A tenant's key")->type_name("KEY")->envname("SANGAM_KEY");
  command->add_option("--slo", options.slo, "Times the objectives: TTFT 100 ms and 0.2 ms a token of the prompt, TPOT as below")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  command->add_option("--tpot", options.tpot_ms, "Objective for the time between tokens")
      ->check(CLI::Range(1, 3'600'000))
      ->type_name("MS")
      ->capture_default_str();
  command->add_flag("!--no-deadlines", options.deadlines, "Do not tell the mesh the objectives, so that it refuses nothing for them");
  command->add_option("--timeout", options.timeout_s, "What a request gets from when it was due")
      ->check(CLI::Range(1, 86'400))
      ->type_name("S")
      ->capture_default_str();
  command->add_option("--json", options.json, "Write the report for programs")->type_name("FILE");
  command->add_option("--svg", options.svg, "Draw the report")->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  sangam replay day.csv.gz --limit 1000                    the first thousand requests, models in turn\n"
      "  sangam replay day.csv.gz --rate 0.01 --length 0.05       a small share of it, for small models\n"
      "  sangam replay day.csv.gz --models 'chat=A-arith,*=A-base' --svg day.svg\n"
      "Requests go out when they are due, whatever has become of those before. What fails counts as late.\n"
      "Ctrl-C stops sending and reports what was sent. Exit code 5: nothing was answered at all.");
  return command;
}

CLI::App* add_profile(CLI::App& app, ProfileOptions& options) {
  auto* command = app.add_subcommand("profile", "Measure on a running mesh what models cost, and store it");
  command->add_option("models", options.models, "Which; one after the other")->required()->type_name("MODEL");
  command->add_option("--url", options.url, "The mesh")->capture_default_str();
  command->add_option("--key", options.key, "An operator's key")->type_name("KEY")->envname("SANGAM_KEY");
  command->add_option("--store", options.store, "Folder for the profiles, one file a model")->type_name("DIR")->capture_default_str();
  command->add_option("--rounds", options.rounds, "Times through the grid of lengths and streams")->check(CLI::Range(2, 1000))->capture_default_str();
  command->add_option("--streams", options.streams, "Answers at once on a worker, at most")->check(CLI::Range(2, 1024))->capture_default_str();
  command->add_flag("--json", options.json, "Print the profiles as they are stored");
  command->footer(
      "Examples:\n"
      "  sangam profile A-arith                          about a minute, into profiles/A-arith.json\n"
      "  sangam profile A-arith A-roman --store DIR      then, in the configuration: [oracle] profiles = \"DIR\"\n"
      "  sangam simulate day.csv.gz --profile profiles   the trace's apps on models that cost so much\n"
      "Times are those that the workers measure of their own steps. Measure while the mesh serves nothing else.\n"
      "Without [[key]] in the configuration the gateway tells operators' numbers to its own host only; else use --key.");
  return command;
}

CLI::App* add_simulate(CLI::App& app, SimulateOptions& options) {
  auto* command = app.add_subcommand("simulate", "Play a trace against a fleet in virtual time, with the real control loops");
  command->add_option("trace", options.trace, "CSV, plain or gzip, or Mooncake's JSON lines; without it W0, a generated day")->type_name("TRACE");
  command->add_option("--control", options.controls, "Ways to run the fleet, side by side")->type_name("NAME")->delimiter(',')->capture_default_str();
  command->add_option("--dispatch", options.dispatch, "How requests are sent to workers")->type_name("POLICY")->capture_default_str();
  command->add_option("--workers", options.workers, "The fleet; 768 devices where it is not given")->type_name("DEVICES=COUNT")->delimiter(',');
  command->add_option("--base", options.base, "What the apps' models are fine-tunes of, where the trace is not W0")->capture_default_str();
  command->add_option("--shared", options.shared, "Of their weights, what fine-tunes of one base have in common")->check(CLI::Range(0.0, 1.0))->type_name("SHARE")->capture_default_str();
  command->add_option("--profile", options.profiles, "What the apps' models cost: files or folders of `sangam profile`; instead of --base")->type_name("FILE");
  auto* what_if = command->add_option("--what-if", options.what_if, "Play the load of a running mesh instead: its snapshot's file, or its address")->type_name("SNAPSHOT");
  command->add_option("--change", options.changes, "What would be otherwise (below); all of them together stand beside the mesh as it is")->type_name("CHANGE")->needs(what_if);
  command->add_option("--seconds", options.seconds, "Of the mesh's load that are played")->check(CLI::Range(1.0, 86'400.0))->capture_default_str()->needs(what_if);
  command->add_option("--key", options.key, "An operator's key, where --what-if is an address")->type_name("KEY")->envname("SANGAM_KEY");
  command->add_option("--seed", options.seed, "Of W0 and of scaling, and of a what-if's requests")->capture_default_str();
  command->add_option("--rate", options.rate, "Times as many requests")->capture_default_str();
  command->add_option("--from", options.part.from_s, "Begin at this second of the trace")->check(CLI::Range(0.0, 1e9))->capture_default_str();
  command->add_option("--for", options.part.for_s, "So many seconds of the trace; 0: to its end")->check(CLI::Range(0.0, 1e9))->capture_default_str();
  command->add_option("--time-scale", options.time_scale, "Seconds of the day in one of the trace, for device-hours")->check(CLI::Range(0.001, 1e6))->capture_default_str();
  command->add_option("--attainment", options.attainment, "Share of tokens on time that workers are added for")->check(CLI::Range(0.5, 0.99999))->capture_default_str();
  command->add_option("--slo", options.slo, "Times the objectives: TTFT 100 ms and 0.2 ms a token of the prompt, TPOT 50 ms")->check(CLI::Range(0.001, 1000.0))->capture_default_str();
  command->add_flag("--refuse", options.refuse, "Refuse what would be late instead of serving it as best effort");
  // A snapshot says these things itself; --change says what would be otherwise.
  for (const char* other : {"trace", "--control", "--dispatch", "--workers", "--base", "--shared", "--profile", "--rate", "--from", "--for",
                            "--time-scale", "--attainment", "--slo", "--refuse"}) {
    what_if->excludes(command->get_option(other));
  }
  command->add_option("--json", options.json, "Write the report for programs")->type_name("FILE");
  command->add_option("--svg", options.svg, "Draw the report")->type_name("FILE");
  std::string controls;
  for (const sim::ControlName& control : sim::control_names()) {
    controls += "  " + std::string(control.name) + std::string(28 - control.name.size(), ' ') + std::string(control.what) + "\n";
  }
  command->footer("Controls:\n" + controls +
                  "Changes:\n"
                  "  rate=3, 'rate MODEL=3'  times as many requests, of all models or of one\n"
                  "  workers=4, workers=+2   so many workers of each class, or so many more\n"
                  "  'remove MODEL'          nobody asks for it any more\n"
                  "  control=NAME            another way to run the fleet\n"
                  "  slo=0.5                 times the deadlines\n"
                  "Examples:\n"
                  "  sangam simulate --what-if http://127.0.0.1:8080 --change rate=3 --change workers=+1\n"
                  "  sangam simulate --svg day.svg                            a day of 603,000 requests on 768 devices\n"
                  "  sangam simulate --for 120 --control sangam,blitzscale    two minutes of it, side by side\n"
                  "  sangam simulate calls.csv.gz --workers 1=32 --time-scale 1");
  return command;
}

Result<void> generate(const GenerateOptions& options) {
  return sim::write_trace(sim::w0(options.seed, options.day), options.output);
}

Result<void> show(const std::string& file) {
  const auto trace = sim::read_trace(file);
  if (!trace) return trace.error();
  std::cout << sim::table_of(*trace);
  return {};
}

}  // namespace

struct TraceCommands::Parts {
  GenerateOptions generating;
  std::string shown;
  ReplayOptions replaying;
  SimulateOptions simulating;
  ProfileOptions profiling;
  CLI::App* generate_command = nullptr;
  CLI::App* show_command = nullptr;
  CLI::App* replay_command = nullptr;
  CLI::App* simulate_command = nullptr;
  CLI::App* profile_command = nullptr;
};

TraceCommands::TraceCommands(CLI::App& app) : parts_(std::make_unique<Parts>()) {
  auto* group = app.add_subcommand("trace", "Generate and look at request traces");
  group->require_subcommand(1);
  group->footer(
      "Examples:\n"
      "  sangam trace generate --w0 -o day.csv.gz\n"
      "  sangam trace generate --w0 --requests 6000 --minutes 2 --seed 7 -o short.csv\n"
      "  sangam trace show day.csv.gz");
  parts_->generate_command = add_generate(*group, parts_->generating);
  parts_->show_command = add_show(*group, parts_->shown);
  parts_->replay_command = add_replay(app, parts_->replaying);
  parts_->simulate_command = add_simulate(app, parts_->simulating);
  parts_->profile_command = add_profile(app, parts_->profiling);
}

TraceCommands::~TraceCommands() = default;

std::optional<Result<void>> TraceCommands::run() const {
  if (parts_->generate_command->parsed()) return generate(parts_->generating);
  if (parts_->show_command->parsed()) return show(parts_->shown);
  if (parts_->replay_command->parsed()) return replay(parts_->replaying);
  if (parts_->simulate_command->parsed()) {
    unblock_signals();  // Nobody waits for them there, and the run may take long.
    return simulate_and_report(parts_->simulating);
  }
  if (parts_->profile_command->parsed()) return profile_models(parts_->profiling);
  return std::nullopt;
}

}  // namespace sangam
