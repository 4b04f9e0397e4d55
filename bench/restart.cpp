// A worker of 1 GiB is killed under its clients: when does it produce tokens again?
//
// Under `--processes` the supervisor keeps the memory of the worker, which finds two models of 400 MB there, proves
// them by their hashes and serves. Beside it the same without kept memory, by starting the whole mesh anew.
#include <dirent.h>

#include <cctype>
#include <fstream>
#include <sstream>
#include <vector>

#include "bench/engine/random_model.hpp"
#include "bench/engine/write_checkpoint.hpp"
#include "bench/middle_model.hpp"
#include "bench/processes.hpp"
#include "bench/report.hpp"
#include "cli/http_client.hpp"

using namespace sangam;

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

double millis_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

std::vector<std::string> stat_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

/// The process that hosts worker/1; 0 while there is none.
pid_t worker_of(pid_t supervisor) {
  pid_t found = 0;
  DIR* processes = opendir("/proc");
  while (const dirent* entry = readdir(processes)) {
    const std::string pid = entry->d_name;
    if (std::isdigit(static_cast<unsigned char>(pid[0])) == 0) continue;
    std::ifstream file("/proc/" + pid + "/cmdline");
    const std::string command((std::istreambuf_iterator<char>(file)), {});
    const auto stat = stat_of(pid);
    if (stat.size() > 20 && stat[1] == std::to_string(supervisor) && command.find(std::string("run\0worker/1", 12)) != command.npos)
      found = pid_t(std::stol(pid));
  }
  closedir(processes);
  return found;
}

/// How long ago a process began, in the kernel's ticks of 10 ms.
double age_ms(pid_t pid) {
  const auto stat = stat_of(std::to_string(pid));
  if (stat.size() <= 20) give_up("the worker is gone again");
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started_s = double(std::stoll(stat[19])) / double(sysconf(_SC_CLK_TCK));
  return (double(now.tv_sec) + double(now.tv_nsec) / 1e9 - started_s) * 1e3;
}

/// One token; the request waits in its queue as long as nobody serves.
void one_token(const HttpBase& base) {
  const HttpCall call{"POST", "/v1/completions",
                      R"({"model":"first","prompt":[1,2,3],"max_tokens":1,"temperature":0,"ignore_eos":true})", Millis(60'000)};
  const auto answer = http_call(base, call);
  if (!answer || answer->status != 200) give_up(answer ? answer->body : answer.error().context);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// A tokenizer that knows bytes only, from a shipped model: prompts come as numbers here.
void write_model(std::uint64_t seed, const fs::path& folder) {
  if (auto written = write_checkpoint(RandomModel(config_of_400_megabytes(), seed), folder); !written)
    give_up(written.error().context);
  const fs::path shipped = fs::path(SANGAM_SOURCE_DIR) / "models" / "A-arith";
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    if (fs::exists(shipped / file)) fs::copy_file(shipped / file, folder / file);
  }
}

}  // namespace

int main(int argc, char** argv) {
  block_signals();
  const Report report(argc, argv);
  const fs::path folder = fs::temp_directory_path() / ("sangam-bench-restart-" + std::to_string(getpid()));
  write_model(1, folder / "first");
  write_model(2, folder / "second");
  const fs::path file = folder / "mesh.toml";
  std::ofstream(file) << "[mesh]\nlog = \"error\"\n[gateway]\nlisten = \"127.0.0.1:0\"\n"
                      << "[[model]]\nid = \"first\"\npath = \"first\"\n[[model]]\nid = \"second\"\npath = \"second\"\n"
                      << "[[worker]]\nname = \"worker/1\"\nmemory = \"1GiB\"\npage = \"2MiB\"\n";
  std::vector<double> after_exec, after_kill, fresh;
  {
    const Processes mesh(file.string(), (folder / "state").string());
    const auto base = parse_http_base(mesh.url);
    if (!base) give_up(base.error().context);
    await_ready(mesh.url);
    one_token(*base);
    for (int round = 0; round < kRounds; ++round) {
      const pid_t before = worker_of(mesh.supervisor());
      const auto began = Clock::now();
      kill(before, SIGKILL);
      one_token(*base);
      after_kill.push_back(millis_since(began));
      after_exec.push_back(age_ms(worker_of(mesh.supervisor())));
    }
  }
  {
    const auto began = Clock::now();
    const Processes mesh(file.string(), (folder / "fresh").string());
    const auto base = parse_http_base(mesh.url);
    if (!base) give_up(base.error().context);
    await_ready(mesh.url);
    one_token(*base);
    fresh.push_back(millis_since(began));
  }
  const double restarted = median(after_exec);
  report.row({"first token after exec, memory kept", restarted, "ms", "whole mesh started anew: " + Report::number(fresh[0]) + " ms",
              "<= 200", restarted <= 200});
  report.row({"first token after SIGKILL", median(after_kill), "ms", "with the supervisor's delay of 100 ms", "", true});
  fs::remove_all(folder);
}
