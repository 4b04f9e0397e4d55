// The `sangam` command: reads the command line, builds everything, and passes it down.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <iostream>

#include "actors/host/log.hpp"
#include "cli/ask.hpp"
#include "cli/children.hpp"
#include "cli/ctl.hpp"
#include "cli/exit_code.hpp"
#include "cli/holder.hpp"
#include "cli/key_files.hpp"
#include "cli/merge/merge_command.hpp"
#include "cli/mesh_config.hpp"
#include "cli/process.hpp"
#include "cli/signals.hpp"
#include "cli/trace_commands.hpp"

using namespace sangam;
namespace fs = std::filesystem;

namespace {

constexpr const char* kVersion = "0.1.0";
constexpr Millis kStopGrace{10'000};

/// `unavailable` means something else at each place.
int fail(const Error& error, int exit_when_unavailable = kExitUnavailable) {
  std::cerr << "sangam: " << error.context << std::endl;
  return error.code == ErrorCode::unavailable ? exit_when_unavailable : exit_code_of(error.code);
}

int report(const Result<void>& result) { return result ? kExitOk : fail(result.error()); }

/// The models that ship: beside the build tree of a checkout, or where an installation puts them.
fs::path shipped_pool() {
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure).parent_path();
  for (const auto& place : {self / "../../models", self / "../share/sangam/models"}) {
    if (fs::exists(place)) return place.lexically_normal();
  }
  return "models";
}

fs::path default_state() {
  const char* home = std::getenv("XDG_STATE_HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / "sangam";
  const char* user = std::getenv("HOME");
  return fs::path(user == nullptr ? "/var/tmp" : user) / ".local/state/sangam";
}

/// What `up` and `run` have in common.
struct ServeOptions {
  std::string config;
  std::string models;
  std::string listen;
  std::string state;
  std::string log;
  std::string sockets;  ///< Where the processes of one machine meet; empty: as the configuration's nodes say.
  std::string node;
  bool processes = false;
  std::vector<std::string> roles;
};

void add_serve_options(CLI::App& command, ServeOptions& options) {
  command.add_option("--config", options.config, "TOML file; without it the shipped models are served")->type_name("FILE");
  command.add_option("--models", options.models, "Folder of models to serve where the file names none")->type_name("DIR");
  command.add_option("--listen", options.listen, "Address of the HTTP API, e.g. 0.0.0.0:8080; port 0 takes any")->type_name("HOST:PORT");
  command.add_option("--state", options.state, "Folder for what must survive")->type_name("DIR");
  command.add_option("--log", options.log, "debug, info, warning, error or off")->type_name("LEVEL");
}

/// One node a role, meeting over Unix sockets in `folder`.
Result<void> add_local_nodes(MeshConfig& config, const fs::path& folder) {
  config.nodes.clear();
  config.keys.clear();  // Who may enter is a matter of the folder's permissions.
  for (const auto& role : roles_of(config)) {
    std::string name = role;
    std::replace(name.begin(), name.end(), '/', '-');
    const std::string path = (folder / (name + ".sock")).string();
    constexpr std::size_t kSocketPathMax = 107;  // sun_path of unix(7), less the final zero.
    if (path.size() > kSocketPathMax) {
      return make_error(ErrorCode::invalid_input, path + ": longer than the " + std::to_string(kSocketPathMax) +
                                                      " bytes of a socket's path; choose a shorter --state");
    }
    config.nodes.push_back({.name = NodeName(name), .endpoint = "ipc://" + path, .listen = "ipc://" + path, .roles = {role}});
  }
  return {};
}

std::string holder_socket(const fs::path& sockets) {
  return (sockets / "holder.sock").string();
}

Result<MeshConfig> configuration(const ServeOptions& options) {
  const fs::path pool = options.models.empty() ? shipped_pool() : fs::path(options.models);
  auto config = options.config.empty() ? default_mesh_config(pool) : read_mesh_config(options.config, pool);
  if (!config) return config;
  if (!options.listen.empty()) config->gateway.listen = options.listen;
  if (!options.log.empty()) config->log_level = options.log;
  if (!options.state.empty()) config->state = options.state;
  if (config->state.empty()) config->state = default_state();
  config->state = fs::absolute(config->state);
  config->gateway.version = kVersion;
  config->own = NodeName(options.node);
  if (options.sockets.empty()) return config;
  if (auto added = add_local_nodes(*config, options.sockets); !added) return added.error();
  for (auto& worker : config->workers) {
    if (worker.holder.empty()) worker.holder = holder_socket(options.sockets);
  }
  return config;
}

Result<void> make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (!failure) return {};
  return make_error(ErrorCode::exhausted, folder.string() + ": " + failure.message() + "; choose another folder with --state");
}

void greet(const MeshConfig& config, const std::string& url) {
  const auto& models = config.gateway.models;
  const std::string example = models.front().id.text();
  std::cout << "listening on " << url << "\n"
            << "serving " << models.size() << " models; try\n"
            << "  curl " << url << "/v1/chat/completions -H 'Content-Type: application/json' \\\n"
            << "    -d '{\"model\": \"" << example << "\", \"messages\": [{\"role\": \"user\", \"content\": \"A347+085=\"}]}'"
            << std::endl;
}

/// Hosts `roles` until SIGINT or SIGTERM.
int serve(const MeshConfig& config, const std::vector<std::string>& roles, const fs::path& state) {
  if (auto made = make_folder(state); !made) return fail(made.error());
  auto process = MeshProcess::open(config, roles, state);
  if (!process) return fail(process.error(), kExitState);
  if (auto started = (*process)->start(config, roles); !started) return fail(started.error(), kExitAddress);
  if (!(*process)->url().empty()) greet(config, (*process)->url());
  for (std::optional<int> signal; signal != SIGINT && signal != SIGTERM;) signal = wait_for_signal(Seconds(3600));
  (*process)->stop(kStopGrace);
  return kExitOk;
}

/// This machine's processes, one a role, each started as `sangam run ROLE`.
int serve_in_processes(const MeshConfig& config, const ServeOptions& options) {
  const fs::path sockets = config.state / "sockets";
  if (auto made = make_folder(sockets); !made) return fail(made.error());
  if (auto level = set_log_level(config.log_level); !level) return fail(level.error());
  auto checked = config;
  if (auto nodes = add_local_nodes(checked, sockets); !nodes) return fail(nodes.error());
  std::vector<std::string> shared = {"--state", config.state.string(), "--sockets", sockets.string()};
  const auto pass_on = [&](const char* name, const std::string& value) {
    if (!value.empty()) shared.insert(shared.end(), {name, value});
  };
  pass_on("--config", options.config);
  pass_on("--models", options.models);
  pass_on("--listen", options.listen);
  pass_on("--log", options.log);
  std::vector<ChildSpec> children;
  for (const auto& role : roles_of(config)) {
    children.push_back({role, {"run", role}});
    auto& arguments = children.back().arguments;
    arguments.insert(arguments.end(), shared.begin(), shared.end());
  }
  // It lives as long as the workers' supervisor: they die and come back below it.
  const auto holder = Holder::start(holder_socket(sockets));
  if (!holder) return fail(holder.error(), kExitState);
  return run_children(children);
}

int up(const ServeOptions& options) {
  const auto config = configuration(options);
  if (!config) return fail(config.error());
  if (options.processes) return serve_in_processes(*config, options);
  auto whole = *config;
  whole.nodes.clear();
  return serve(whole, roles_of(whole), whole.state / "mesh");
}

/// Keeps workers' memory until SIGINT or SIGTERM.
int hold(const ServeOptions& options) {
  if (options.sockets.empty())
    return fail(make_error(ErrorCode::invalid_input, "the holder needs --sockets, the folder where workers look for it"));
  if (auto made = make_folder(options.sockets); !made) return fail(made.error());
  const auto holder = Holder::start(holder_socket(options.sockets));
  if (!holder) return fail(holder.error(), kExitState);
  for (std::optional<int> signal; signal != SIGINT && signal != SIGTERM;) signal = wait_for_signal(Seconds(3600));
  return kExitOk;
}

int run(const ServeOptions& options) {
  const auto config = configuration(options);
  if (!config) return fail(config.error());
  if (options.roles == std::vector<std::string>{"holder"}) return hold(options);
  const auto known = roles_of(*config);
  for (const auto& role : options.roles) {
    if (std::find(known.begin(), known.end(), role) != known.end()) continue;
    std::string names;
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
    return fail(make_error(ErrorCode::invalid_input, "'" + role + "' is no role of this mesh; it has " + names));
  }
  std::string folder = options.roles.front();
  std::replace(folder.begin(), folder.end(), '/', '-');
  return serve(*config, options.roles, config->state / folder);
}

CLI::App* add_run_command(CLI::App& app, ServeOptions& options) {
  auto* command = app.add_subcommand("run", "Host some actors of a mesh in this process");
  add_serve_options(*command, options);
  command->add_option("roles", options.roles, "gateway, queue, scheduler, lifecycle, oracle, placement, autoscaler, worker/NAME; or holder alone")->required()->type_name("ROLE...");
  command->add_option("--sockets", options.sockets, "Meet the other processes of this machine in this folder")->type_name("DIR");
  command->add_option("--node", options.node, "Which [[node]] this is, where several host the roles")->type_name("NAME");
  return command;
}

CLI::App* add_ask_command(CLI::App& app, AskOptions& options) {
  auto* command = app.add_subcommand("ask", "Send one prompt to a running mesh and print the answer");
  command->add_option("model", options.model, "Which model")->required()->type_name("MODEL");
  command->add_option("prompt", options.prompt, "What to say to it")->required()->type_name("PROMPT");
  command->add_option("--max-tokens", options.max_tokens, "Longest answer")->type_name("N");
  command->add_option("--temperature", options.temperature, "0 takes the likeliest token")->capture_default_str();
  return command;
}

struct KeygenOptions {
  std::string folder;
  std::vector<std::string> nodes;
};

CLI::App* add_keygen_command(CLI::App& app, KeygenOptions& options) {
  auto* command = app.add_subcommand("keygen", "Make the keys of a mesh's nodes");
  command->add_option("folder", options.folder, "Where NODE.key goes, for [mesh] keys")->required()->type_name("DIR");
  command->add_option("nodes", options.nodes, "For which nodes; their public keys are printed")->required()->type_name("NODE...");
  return command;
}

constexpr std::array<std::pair<const char*, const char*>, 9> kCtlVerbs{{
    {"models", "What each worker holds of each model"},
    {"memory", "What each worker's memory is used for"},
    {"snapshot", "What the mesh is doing and what its models cost, for `sangam simulate --what-if`"},
    {"load", "Read models into host memory"},
    {"wake", "Make models active"},
    {"fork", "Make models active on one more worker, with the weights of one that has them"},
    {"sleep", "Let live requests end, and keep the weights in host memory only"},
    {"unload", "Let live requests end, and forget the weights"},
    {"drain", "As sleep; use it with --at-deadline to get live requests out of the way"},
}};

CLI::App* add_ctl_command(CLI::App& group, const std::string& verb, const std::string& what, CtlOptions& options) {
  auto* command = group.add_subcommand(verb, what);
  command->add_option("--url", options.url, "The mesh")->capture_default_str();
  command->add_option("--key", options.key, "An operator's key")->type_name("KEY")->envname("SANGAM_KEY");
  if (verb == "snapshot") {
    command->add_option("--output", options.output, "Where to, instead of standard output")->type_name("FILE");
    return command;
  }
  command->add_flag("--json", options.json, "Print the answer as it is");
  if (verb == "models" || verb == "memory") return command;
  command->add_option("models", options.models, "Which models; none: all")->type_name("MODEL...");
  command->add_option("--worker", options.workers, "On which workers; none: where they are, or where it is best")
      ->type_name("WORKER");
  if (verb == "fork")
    command->add_option("--from", options.sources, "Whose weights; none: whoever has them")->type_name("WORKER");
  if (verb == "load" || verb == "wake" || verb == "fork") {
    command->add_flag("--pin", options.pin, "Keep them there, whatever else wants room");
    return command;
  }
  command->add_option_function<std::int64_t>(
             "--drain-for", [&options](std::int64_t millis) { options.drain_for = Millis(millis); },
             "What live requests get to end, default 30000")
      ->type_name("MS");
  command->add_option("--at-deadline", options.at_deadline, "What becomes of those that have not ended")
      ->check(CLI::IsMember({"stay", "cancel", "migrate"}))
      ->capture_default_str();
  return command;
}

CLI::App* add_merge_command(CLI::App& app, MergeCommandOptions& options) {
  auto* command = app.add_subcommand("merge", "Find the fewest bytes in which a pool of models stays within each one's accuracy budget");
  command->add_option("pool", options.pool, "The models, their tasks and budgets")->required()->type_name("POOL.toml");
  command->add_option("-o,--output", options.output, "Write the merged models here, ready to serve")->type_name("DIR");
  command->add_option("--html", options.html, "Draw what was tried and what became of each slot")->type_name("FILE");
  command->add_option("--state", options.state, "Where trials are kept; without it, beside the pool's file")->type_name("DIR");
  command->add_flag("--resume", options.resume, "Go on with a merge that was broken off; its trials are not made again");
  command->add_option("--threads", options.threads, "0: one a processor")->check(CLI::Range(0, 1024))->capture_default_str();
  command->add_flag("--json", options.json, "Print the outcome for programs");
  command->footer(
      "Examples:\n"
      "  sangam merge configs/merge_c.toml -o merged --html merged.html\n"
      "                                                         five fine-tunes of one base, 2 points each\n"
      "  sangam merge configs/merge_c.toml -o merged --resume   go on after a crash, to the same result\n"
      "Exit codes: as of sangam; 0 also where a model cannot be certified, which the table says.");
  return command;
}

std::vector<CLI::App*> add_ctl_commands(CLI::App& app, CtlOptions& options) {
  auto* ctl_group = app.add_subcommand("ctl", "Look at a running mesh's models and memory, and change them");
  ctl_group->require_subcommand(1);
  ctl_group->footer(
      "Examples:\n"
      "  sangam ctl models                     what each worker holds\n"
      "  sangam ctl wake A-roman --pin         make it active and keep it so\n"
      "  sangam ctl sleep                      put all models to sleep, their weights in host memory\n"
      "  sangam ctl drain --worker worker/1 --drain-for 10000 --at-deadline migrate\n"
      "Without [[key]] in the configuration the gateway obeys its own host only; else use --key.");
  std::vector<CLI::App*> ctl_commands;
  for (const auto& [verb, what] : kCtlVerbs) ctl_commands.push_back(add_ctl_command(*ctl_group, verb, what, options));
  return ctl_commands;
}

Result<void> run_ctl(const std::string& verb, const CtlOptions& options) {
  if (verb == "models") return ctl_models(options);
  if (verb == "memory") return ctl_memory(options);
  if (verb == "snapshot") return ctl_snapshot(options);
  return ctl_command(verb, options);
}

}  // namespace

int main(int argc, char** argv) {
  block_signals();
  CLI::App app{"Sangam serves many language models on few devices.", "sangam"};
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  sangam up                                  serve the shipped models on http://127.0.0.1:8080\n"
      "  sangam up --listen 127.0.0.1:0 --processes one process an actor, on any free port\n"
      "  sangam run worker/1 --config mesh.toml     one actor of a mesh that spans machines\n"
      "  sangam ask A-roman N0247=                  ask a running mesh\n"
      "  sangam ctl models                          what its workers hold\n"
      "  sangam merge configs/merge_c.toml -o merged  make five models share what they can\n"
      "  sangam profile A-roman                     measure what it costs\n"
      "  sangam replay day.csv.gz --limit 1000      put a recorded load on it, and see what is on time\n"
      "Exit codes: 0 done; 1 failed; 2 wrong command line or configuration; 3 address cannot be listened on;\n"
      "  4 state folder cannot be used; 5 no mesh answers or it is not ready.");

  ServeOptions serving;
  auto* up_command = app.add_subcommand("up", "Start a whole mesh on this machine");
  add_serve_options(*up_command, serving);
  up_command->add_flag("--processes", serving.processes, "One process an actor, supervised");

  auto* run_command = add_run_command(app, serving);

  AskOptions asking;
  auto* ask_command = add_ask_command(app, asking);
  auto* models_command = app.add_subcommand("models", "List the models of a running mesh");
  for (auto* command : {ask_command, models_command})
    command->add_option("--url", asking.url, "The mesh")->capture_default_str();

  CtlOptions operating;
  const auto ctl_commands = add_ctl_commands(app, operating);

  KeygenOptions making;
  auto* keygen_command = add_keygen_command(app, making);

  std::string health_url = "http://127.0.0.1:8080/readyz";
  auto* health_command = app.add_subcommand("health", "Exit 0 when a mesh is ready");
  health_command->add_option("url", health_url, "What to ask")->capture_default_str();

  MergeCommandOptions merging;
  auto* merge_command = add_merge_command(app, merging);

  const TraceCommands traces(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? kExitOk : kExitUsage;
  }
  if (up_command->parsed()) return up(serving);
  if (run_command->parsed()) return run(serving);
  if (ask_command->parsed()) return report(ask(asking));
  if (keygen_command->parsed()) return report(make_keys(making.folder, making.nodes));
  if (merge_command->parsed()) {
    unblock_signals();  // Whatever it is at, nothing is lost that --resume would not find.
    return report(merge_pool(merging));
  }
  if (models_command->parsed()) return report(list_models(asking.url));
  for (auto* command : ctl_commands) {
    if (command->parsed()) return report(run_ctl(command->get_name(), operating));
  }
  if (const auto done = traces.run()) return report(*done);
  return report(check_health(health_url));
}
