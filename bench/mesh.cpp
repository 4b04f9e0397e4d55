// What the mesh adds to a request and to a token over the bare engine: gateway, queue, scheduler and wire.
//
// The same prompt goes to the engine alone, to a mesh in this process, and to a mesh of one process an actor.
// One request at a time, so that nothing waits: what remains is the way.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "actors/worker/engine_runner.hpp"
#include "bench/processes.hpp"
#include "bench/report.hpp"
#include "cli/ask.hpp"
#include "cli/http_client.hpp"
#include "cli/mesh_config.hpp"
#include "cli/process.hpp"
#include "cli/signals.hpp"

using namespace sangam;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRequests = 1000;
constexpr int kStreams = 40;
constexpr int kTokens = 200;
constexpr int kWarmUp = 50;
const std::string kModel = "A-arith";
const std::string kPrompt = "A347+085=";
/// The pool's vocabulary is the bytes. Every token is made this one: others may be half a character, which
/// waits for its other half, and that wait is not the mesh's.
constexpr TokenId kOnlyToken = 'A';

double micros_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

struct Timings {
  std::vector<double> request_us;  ///< A prompt and one token.
  std::vector<double> token_us;    ///< Between two tokens of a stream.
};

Run run_of(std::uint64_t id, int tokens) {
  Run run;
  run.request = RequestId{id};
  run.model = ModelId(kModel);
  run.prompt = {257};  // Begins a text.
  for (const char c : kPrompt) run.prompt.push_back(static_cast<unsigned char>(c));
  run.sampling.temperature = 0.0;
  run.sampling.max_tokens = Tokens(tokens);
  run.sampling.ignore_eos = true;
  run.sampling.logit_bias = {{kOnlyToken, 100.0F}};
  return run;
}

/// Runs one request to its end; calls `on_token` after each step that produced.
template <class OnToken>
void run_bare(Runner& runner, const Run& run, OnToken on_token) {
  if (auto added = runner.add(run); !added) give_up(added.error().context);
  while (runner.has_work()) {
    if (!runner.step().produced.empty()) on_token();
  }
}

Timings time_engine(const WorkerOptions& options) {
  auto runner = make_engine_runner(options);
  if (!runner) give_up(runner.error().context);
  auto loaded = (*runner)->begin({ModelId(kModel), Residency::active, {}});
  for (Result<bool> done = false; loaded && done && !*done;) {
    done = (*runner)->advance(false);
    if (!done) loaded = done.error();
  }
  if (!loaded) give_up(loaded.error().context);
  Timings timings;
  std::uint64_t id = 0;
  for (int i = 0; i < kWarmUp + kRequests; ++i) {
    const auto start = Clock::now();
    run_bare(**runner, run_of(++id, 1), [] {});
    if (i >= kWarmUp) timings.request_us.push_back(micros_between(start, Clock::now()));
  }
  for (int i = 0; i < kStreams; ++i) {
    auto last = Clock::time_point{};
    run_bare(**runner, run_of(++id, kTokens), [&] {
      const auto now = Clock::now();
      if (last != Clock::time_point{}) timings.token_us.push_back(micros_between(last, now));
      last = now;
    });
  }
  return timings;
}

/// A connection that is kept open, with as little of its own as possible between the clock and the wire.
class Connection {
 public:
  explicit Connection(const HttpBase& base) : host_(base.host + ":" + base.port) {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(base.port)));
    inet_pton(AF_INET, base.host.c_str(), &place.sin_addr);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) give_up("cannot connect to " + host_);
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send_completion(int tokens, bool stream) {
    const std::string body = "{\"model\":\"" + kModel + "\",\"prompt\":\"" + kPrompt + "\",\"max_tokens\":" +
                             std::to_string(tokens) + ",\"temperature\":0,\"ignore_eos\":true,\"logit_bias\":{\"" +
                             std::to_string(kOnlyToken) + "\":100},\"stream\":" + (stream ? "true" : "false") + "}";
    const std::string message = "POST /v1/completions HTTP/1.1\r\nHost: " + host_ +
                                "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                                "\r\n\r\n" + body;
    if (write(socket_, message.data(), message.size()) != static_cast<ssize_t>(message.size())) give_up("short write");
    got_.clear();
  }

  /// Reads until `mark` has come; takes off all that is there up to its last occurrence, and counts them.
  /// 0: the stream has ended without it.
  int read_past(std::string_view mark) {
    for (int count = take(mark);; count = take(mark)) {
      if (count > 0 || got_.find("[DONE]") != std::string::npos) return count;
      char piece[16384];
      const ssize_t size = read(socket_, piece, sizeof piece);
      if (size <= 0) give_up("the mesh closed the connection after: " + got_);
      got_.append(piece, static_cast<std::size_t>(size));
      if (got_.starts_with("HTTP/1.1 ") && !got_.starts_with("HTTP/1.1 200")) give_up("the mesh answered: " + got_);
    }
  }

 private:
  int take(std::string_view mark) {
    int count = 0;
    for (std::size_t at; (at = got_.find(mark)) != std::string::npos; ++count) got_.erase(0, at + mark.size());
    return count;
  }

  std::string host_;
  int socket_ = -1;
  std::string got_;
};

Timings time_mesh(const std::string& url) {
  const auto base = parse_http_base(url);
  if (!base) give_up(base.error().context);
  Connection connection(*base);
  Timings timings;
  for (int i = 0; i < kWarmUp + kRequests; ++i) {
    const auto start = Clock::now();
    connection.send_completion(1, false);
    connection.read_past("\"usage\"");
    if (i >= kWarmUp) timings.request_us.push_back(micros_between(start, Clock::now()));
    connection.read_past("}}");
  }
  for (int i = 0; i < kStreams; ++i) {
    Connection stream(*base);
    stream.send_completion(kTokens, true);
    stream.read_past("\"text\"");
    auto last = Clock::now();
    while (const int came = stream.read_past("\"text\"")) {
      const auto now = Clock::now();
      // Chunks that came together share the wait between them.
      for (int c = 0; c < came; ++c) timings.token_us.push_back(micros_between(last, now) / came);
      last = now;
    }
  }
  return timings;
}

/// Where a mesh runs, and what it may add there at p99.
struct Setting {
  std::string where;
  double request_us_max;
  double token_us_max;
};

void report_added(const Report& report, const Setting& setting, const Timings& mesh, const Timings& bare) {
  const auto rows = [&](const std::string& what, const std::vector<double>& values, double engine, double target) {
    for (const double share : {0.5, 0.99}) {
      const double added = percentile(values, share) - engine;
      const bool judged = share > 0.9;
      report.row({what + " added, p" + std::to_string(static_cast<int>(share * 100)) + ", " + setting.where, added, "us",
                  "bare engine, median " + Report::number(engine) + " us",
                  judged ? "<= " + Report::number(target) : "", !judged || added <= target});
    }
  };
  rows("request", mesh.request_us, percentile(bare.request_us, 0.5), setting.request_us_max);
  rows("token", mesh.token_us, percentile(bare.token_us, 0.5), setting.token_us_max);
}

}  // namespace

int main(int argc, char** argv) {
  block_signals();
  const Report report(argc, argv);
  const auto folder = std::filesystem::temp_directory_path() / ("sangam-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto file = folder / "mesh.toml";
  const auto pool = std::filesystem::path(SANGAM_SOURCE_DIR) / "models";
  std::ofstream(file) << "[mesh]\nlog = \"error\"\n[gateway]\nlisten = \"127.0.0.1:0\"\n[[model]]\nid = \"" << kModel
                      << "\"\npath = \"" << (pool / kModel).string() << "\"\n[[worker]]\nname = \"worker/1\"\nthreads = 1\n";
  const auto config = read_mesh_config(file.string(), pool);
  if (!config) give_up(config.error().context);

  const Timings bare = time_engine(config->workers.front());
  {
    const auto roles = roles_of(*config);
    auto process = MeshProcess::open(*config, roles, folder / "state");
    if (!process) give_up(process.error().context);
    if (auto started = (*process)->start(*config, roles); !started) give_up(started.error().context);
    await_ready((*process)->url());
    report_added(report, {"one process", 200, 50}, time_mesh((*process)->url()), bare);
    (*process)->stop(Millis(1000));
  }
  {
    const Processes processes(file.string(), (folder / "processes").string());
    await_ready(processes.url);
    report_added(report, {"across processes", 1200, 400}, time_mesh(processes.url), bare);
  }
  std::filesystem::remove_all(folder);
}
