// One stream on the source; beside it a thread that forks the model again and again.
#include "bench/source_load.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "messages/mesh/bulk.hpp"

namespace sangam {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSteps = 60;
const ActorName kSource("worker/1");

/// Milliseconds of each decode step of one stream.
std::vector<double> decode_steps(Depot& source, std::uint64_t request) {
  Run run;
  run.request = RequestId{request};
  run.model = kLarge;
  run.prompt = {1, 2, 3, 4, 5, 6, 7, 8};
  run.sampling.temperature = 0.0;
  run.sampling.max_tokens = Tokens{kSteps};
  run.sampling.ignore_eos = true;
  if (auto added = source.engine.add(run); !added) give_up(added.error().context);
  std::vector<double> steps;
  while (source.engine.has_work()) {
    const auto began = Clock::now();
    (void)source.engine.step();
    steps.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  steps.erase(steps.begin());  // The prompt.
  std::sort(steps.begin(), steps.end());
  return steps;
}

double percentile(const std::vector<double>& sorted, double share) {
  return sorted[std::size_t(share * double(sorted.size() - 1) + 0.5)];
}

/// A bulk channel from the source to a reader, both on this host.
struct Channel {
  explicit Channel(Depot& source) {
    BulkOptions options;
    options.node.node = NodeName("source");
    options.node.listen = {"tcp://127.0.0.1:*"};
    options.node.peers = {{NodeName("reader"), "tcp://127.0.0.1:1", {}}};
    server = open_bulk(options, {}).value();
    server->offer(kSource, source.shelf);
    options.node.node = NodeName("reader");
    options.node.listen.clear();
    options.node.peers = {{NodeName("source"), server->endpoints().front(), {}}};
    options.owners = {{kSource, NodeName("source")}};
    reader = open_bulk(options, {}).value();
  }
  ~Channel() { server->withdraw(kSource); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] std::unique_ptr<WeightsPull> pull() const {
    WeightsPull::Sources sources;
    sources.push_back(reader->open(kSource).value());
    return std::make_unique<WeightsPull>(kLarge, std::move(sources));
  }

  std::unique_ptr<Bulk> server, reader;
};

struct Beside {
  std::vector<double> steps;
  double forks = 0;          ///< While the stream ran,
  double fork_seconds = 0;   ///< each this long.
};

Beside steps_beside(Depot& source, Depot& taker, std::uint64_t request, const std::function<double()>& fork) {
  std::atomic<bool> stop{false};
  Beside beside;
  double seconds = 0;
  std::jthread forking([&] {
    while (!stop) {
      seconds += fork();
      beside.forks += 1;
      taker.move(kLarge, Residency::cold);
    }
  });
  beside.steps = decode_steps(source, request);
  stop = true;
  forking.join();
  beside.fork_seconds = seconds / beside.forks;
  return beside;
}

}  // namespace

void report_source_load(const Report& report, Depot& source, Depot& taker, const std::string& holder) {
  const std::string paper = "Janus: P99 +5.7 % and +4.0 %";
  (void)decode_steps(source, 1);
  const auto alone = decode_steps(source, 2);
  report.row({"decode step of a source, alone: P50", percentile(alone, 0.5), "ms", "", "", true});
  report.row({"decode step of a source, alone: P99", percentile(alone, 0.99), "ms", "", "", true});
  const double bytes = double(source.stock.bytes(kLarge).weights.count());
  const auto rows = [&](const std::string& how, const Beside& beside) {
    const auto change = [&](double share) { return 100 * (percentile(beside.steps, share) / percentile(alone, share) - 1); };
    const std::string forks = Report::number(beside.forks) + " forks of " + Report::number(beside.fork_seconds * 1e3) +
                              " ms, reader on the same cores";
    report.row({"the same while it is forked " + how + ": P50 longer by", change(0.5), "%", forks, "", true});
    report.row({"the same while it is forked " + how + ": P99 longer by", change(0.99), "%", paper, "", true});
    report.row({"fork " + how + " beside a stream", bytes / beside.fork_seconds / 1e9, "GB/s", "", "", true});
  };
  rows("on this host", steps_beside(source, taker, 3, [&] {
         auto peer = PeerWeights::open(holder, kSource.text(), kDevice.page);
         if (!peer) give_up(peer.error().context);
         return taker.move(kLarge, Residency::active, {*peer});
       }));
  const Channel channel(source);
  rows("over the bulk channel", steps_beside(source, taker, 4, [&] { return taker.move(kLarge, Residency::active, {}, channel.pull()); }));
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    times.push_back(taker.move(kLarge, Residency::active, {}, channel.pull()));
    taker.move(kLarge, Residency::cold);
  }
  std::sort(times.begin(), times.end());
  report.row({"fork over the bulk channel, loopback", bytes / times[2] / 1e9, "GB/s", "", "", true});
}

}  // namespace sangam
