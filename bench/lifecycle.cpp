// How fast models come and go: wakes and forks beside this machine's own copying, and what a variant moves.
//
// A random model of 400 MB is read, put to sleep and woken; a second worker forks it from the first one's memory. A
// variant with 60 % of the same tensors shows that only the rest moves. A shipped model of 2 MB shows what is fixed.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/depot.hpp"
#include "bench/engine/random_model.hpp"
#include "bench/engine/write_checkpoint.hpp"
#include "bench/middle_model.hpp"
#include "bench/report.hpp"
#include "bench/source_load.hpp"
#include "cli/holder.hpp"

using namespace sangam;

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The tensors of `other` in about 40 % of the bytes, those of `base` elsewhere: whole layers from the last one down.
void write_variant(const fs::path& base, const fs::path& other, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& file : fs::directory_iterator(base)) fs::copy_file(file.path(), folder / file.path().filename());
  const auto from = Checkpoint::open(other);
  const auto into = Checkpoint::open(base);
  if (!from || !into) give_up("a checkpoint that was just written cannot be read");
  std::fstream file(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t header = 0;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const std::byte* first = nullptr;
  for (const auto& [name, tensor] : into->tensors()) first = first ? std::min(first, tensor.bytes.data()) : tensor.bytes.data();
  const std::int64_t wanted = into->bytes().count() * 2 / 5;
  std::int64_t changed = 0;
  for (int layer = 11; layer >= 0; --layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const auto& [name, tensor] : from->tensors()) {
      if (!name.starts_with(prefix) || changed >= wanted) continue;
      file.seekp(std::streamoff(8 + header + std::uint64_t(into->tensors().at(name).bytes.data() - first)));
      file.write(reinterpret_cast<const char*>(tensor.bytes.data()), std::streamsize(tensor.bytes.size()));
      changed += std::int64_t(tensor.bytes.size());
    }
  }
}

/// Bytes a second of memcpy between two buffers of `bytes`, in as many threads as is best. They are the device's, so
/// that their memory is in as large pages as the weights'.
double copy_rate(Device& device, std::size_t bytes) {
  const auto source = device.host_buffer(Bytes(std::int64_t(bytes)));
  const auto target = device.host_buffer(Bytes(std::int64_t(bytes)));
  if (!source || !target) give_up("no memory for two buffers");
  const std::span from = (*source)->bytes();
  const std::span to = (*target)->bytes();
  std::ranges::fill(from, std::byte{1});
  double best = 0;
  for (unsigned threads = 1; threads <= std::thread::hardware_concurrency(); ++threads) {
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round) {
      const auto began = Clock::now();
      std::vector<std::jthread> others;
      const std::size_t part = bytes / threads;
      for (unsigned i = 1; i < threads; ++i)
        others.emplace_back([&, i] { std::memcpy(&to[i * part], &from[i * part], part); });
      std::memcpy(to.data(), from.data(), part);
      others.clear();
      times.push_back(seconds_since(began));
    }
    best = std::max(best, double(bytes) / median(times));
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report(argc, argv);
  const fs::path folder = fs::temp_directory_path() / ("sangam-bench-lifecycle-" + std::to_string(getpid()));
  fs::create_directories(folder);
  {
    const RandomModel base(config_of_400_megabytes(), 1);
    const RandomModel other(config_of_400_megabytes(), 2);
    if (auto written = write_checkpoint(base, folder / "large"); !written) give_up(written.error().context);
    if (auto written = write_checkpoint(other, folder / "other"); !written) give_up(written.error().context);
    write_variant(folder / "large", folder / "other", folder / "variant");
  }
  const std::string socket = (folder / "holder.sock").string();
  const auto holder = Holder::start(socket);
  if (!holder) give_up(holder.error().context);
  Depot one(socket, "worker/1", folder);

  const double read = one.move(kLarge, Residency::active);
  const double bytes = double(one.stock.bytes(kLarge).weights.count());
  const double limit = copy_rate(one.pool->device(), std::size_t(bytes));
  std::vector<double> sleeps, wakes, forks, small;
  one.move(kLarge, Residency::warm);
  for (int round = 0; round < kRounds; ++round) {
    wakes.push_back(one.move(kLarge, Residency::active));
    sleeps.push_back(one.move(kLarge, Residency::warm));
  }
  one.move(kSmall, Residency::active);
  for (int round = 0; round < kRounds; ++round) {
    one.move(kSmall, Residency::warm);
    small.push_back(one.move(kSmall, Residency::active));
  }
  one.move(kLarge, Residency::active);
  Depot two(socket, "worker/2", folder);
  for (int round = 0; round < kRounds; ++round) {
    const auto began = Clock::now();
    auto peer = PeerWeights::open(socket, "worker/1", kDevice.page);
    if (!peer) give_up(peer.error().context);
    two.move(kLarge, Residency::active, {*peer});
    forks.push_back(seconds_since(began));
    two.move(kLarge, Residency::cold);
  }
  report_source_load(report, one, two, socket);
  const std::string reference = "memcpy of as much, best of 1 to " + std::to_string(std::thread::hardware_concurrency()) +
                                " threads: " + Report::number(limit / 1e9) + " GB/s";
  const auto share = [&](const std::string& what, double seconds) {
    const double value = 100 * bytes / seconds / limit;
    report.row({what + ", " + Report::number(bytes / 1e6) + " MB", seconds * 1e3, "ms", reference, "", true});
    report.row({what + ", share of memcpy", value, "%", reference, ">= 90", value >= 90});
  };
  report.row({"cold to active, " + Report::number(bytes / 1e6) + " MB in the page cache", read * 1e3, "ms", reference, "", true});
  share("warm to active", median(wakes));
  share("fork from a peer", median(forks));
  report.row({"active to warm again, copy kept", median(sleeps) * 1e3, "ms", "", "", true});
  report.row({"warm to active, 2 MB: the fixed part", median(small) * 1e3, "ms", "Janus: about 330 ms fixed", "", true});

  one.move(kVariant, Residency::warm);
  const double differs = double(one.stock.bytes(kVariant).missing.count());
  const Bytes before = one.stock.moved();
  const double variant = one.move(kVariant, Residency::active);
  const double moved = double((one.stock.moved() - before).count());
  report.row({"variant that shares 60 %: bytes moved", 100 * moved / bytes, "%", "what differs: " + Report::number(100 * differs / bytes) + " %",
              "<= 41", moved <= 0.41 * bytes && moved == differs});
  report.row({"variant that shares 60 %: warm to active", variant * 1e3, "ms", "", "", true});
  fs::remove_all(folder);
}
