// Tokens per second of the forward pass on a random model of about half a billion parameters, beside this
// machine's limits and beside llama.cpp on the same weights, all measured in this run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/engine/limits.hpp"
#include "bench/engine/random_model.hpp"
#include "bench/engine/write_checkpoint.hpp"
#include "bench/report.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/model/model.hpp"

using namespace sangam;

namespace {

constexpr std::int64_t kContext = 512;
constexpr std::int64_t kTokensPerPage = 64;
constexpr int kBatches[] = {1, 8, 32};

/// The shape of Qwen2-0.5B: 494 million parameters, 358 million of them outside the embedding.
ModelConfig half_billion() {
  ModelConfig c;
  c.architecture = Architecture::qwen2;
  c.vocab_size = 151936;
  c.hidden_size = 896;
  c.intermediate_size = 4864;
  c.layers = 24;
  c.heads = 14;
  c.kv_heads = 2;
  c.head_dim = 64;
  c.context = 32768;
  c.rms_norm_eps = 1e-6;
  c.rope_theta = 1000000.0;
  c.qkv_bias = true;
  c.tied_embeddings = true;
  return c;
}

struct Options {
  bool json = false;
  bool peer = true;
  std::string write;
  CpuOptions cpu;
};

const char* kUsage =
    "Usage: bench_engine [--json] [--no-peer] [--threads N] [--isa NAME] [--write FOLDER]\n"
    "  --no-peer       do not build and run llama.cpp beside\n"
    "  --threads N     0 (default): one for each hardware thread\n"
    "  --isa NAME      best (default), avx512, avx2 or portable\n"
    "  --write FOLDER  only write the random model as a checkpoint\n";

std::optional<Options> options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--no-peer") {
      options.peer = false;
    } else if (argument == "--threads" && !value.empty()) {
      options.cpu.threads = std::atoi(argv[++i]);
    } else if (argument == "--write" && !value.empty()) {
      options.write = argv[++i];
    } else if (argument == "--isa" && isa_named(value)) {
      options.cpu.isa = *isa_named(argv[++i]);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

/// What was measured: tokens per second by name ("prefill", "decode_1"...).
using Rates = std::map<std::string, double>;

std::string decode_name(int batch) {
  return "decode_" + std::to_string(batch);
}

/// Steps on zeroed pages: what the keys and values are does not change the work.
class Measured {
 public:
  Measured(const RandomModel& weights, Ops& ops)
      : model_(Model::create(
                   weights.config(), [&](std::string_view name) { return weights.tensor(name); }, ops)
                   .value()) {
    const std::size_t page_bytes = model_->kv_bytes_per_token() * kTokensPerPage;
    const std::size_t pages = std::size_t(kContext / kTokensPerPage + 1) * 32;
    memory_.resize(pages * page_bytes);
    arena_ = {memory_.data(), page_bytes};
    for (std::size_t i = 0; i < pages; ++i) pages_.push_back(PageId(std::uint32_t(i)));
  }

  [[nodiscard]] Rates rates() {
    Rates rates;
    std::vector<TokenId> prompt(kContext);
    for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = TokenId(i * 7919 % 151936);
    const SequenceSlice whole{prompt, 0, pages_, true};
    rates["prefill"] = double(kContext) / best_seconds(std::span(&whole, 1), 5);
    for (const int batch : kBatches) {
      std::vector<SequenceSlice> slices;
      const std::size_t each = pages_.size() / 32;
      for (std::size_t s = 0; s < std::size_t(batch); ++s) {
        slices.push_back(
            {std::span(prompt).subspan(s, 1), kContext, std::span(pages_).subspan(s * each, each), true});
      }
      rates[decode_name(batch)] = double(batch) / best_seconds(slices, batch == 1 ? 20 : 8);
    }
    return rates;
  }

  [[nodiscard]] std::size_t kv_bytes_per_token() const { return model_->kv_bytes_per_token(); }

 private:
  double best_seconds(std::span<const SequenceSlice> slices, int steps) {
    logits_.resize(slices.size() * std::size_t(model_->config().vocab_size));
    model_->forward(slices, arena_, logits_);
    double best = 1e30;
    for (int step = 0; step < steps; ++step) {
      const auto start = std::chrono::steady_clock::now();
      model_->forward(slices, arena_, logits_);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  }

  std::unique_ptr<Model> model_;
  std::vector<std::byte> memory_;
  PageArena arena_;
  std::vector<PageId> pages_;
  std::vector<float> logits_;
};

/// llama.cpp on the same weights, or nothing where it cannot be had; the script says why on stderr.
Rates peer_rates(const RandomModel& weights, int threads) {
  const std::string folder = SANGAM_SOURCE_DIR "/build/peer";
  const Result<void> written = write_checkpoint(weights, folder + "/model");
  if (!written) {
    std::cerr << written.error().context << '\n';
    return {};
  }
  const std::string command = "python3 " SANGAM_SOURCE_DIR "/bench/engine/peer.py " + folder + " --threads " +
                              std::to_string(threads);
  Rates rates;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    char name[64];
    double value = 0;
    while (std::fscanf(pipe, "%63s %lf", name, &value) == 2) rates[name] = value;
    pclose(pipe);
  }
  return rates;
}

std::string against(const Rates& peer, const std::string& name) {
  const auto found = peer.find(name);
  return found == peer.end() ? "llama.cpp: not measured" : "llama.cpp " + Report::number(found->second);
}

void report_rate(const Report& report, const Rates& ours, const Rates& peer, const std::string& name,
                 const std::string& metric) {
  const double value = ours.at(name);
  const auto found = peer.find(name);
  const bool known = found != peer.end();
  report.row({metric, value, "tok/s", against(peer, name), known ? ">= " + Report::number(found->second) : "",
              !known || value >= found->second});
}

/// What this machine can do, in the vectors that the kernels use.
struct Limits {
  double bandwidth = 0;  ///< bytes per second
  double peak = 0;       ///< fp32 multiplications and additions per second
};

Limits limits_of(std::string_view kernels, int threads) {
  return {read_bandwidth(threads),
          multiply_add_peak(threads, kernels == "avx512" ? 16 : kernels == "avx2" ? 8 : 4)};
}

void report_shares(const Report& report, const Rates& ours, const RandomModel& weights, std::size_t kv_bytes,
                   const Limits& limits) {
  const auto [bandwidth, peak] = limits;
  const ModelConfig& c = weights.config();
  report.row({"read bandwidth, all threads", bandwidth / 1e9, "GB/s", "this machine", "", true});
  report.row({"fp32 multiply-add peak, all threads", peak / 1e9, "GFLOP/s", "this machine", "", true});

  // All linears for every token, attention over the average prefix, the head once.
  const double embedding = double(c.vocab_size * c.hidden_size);
  const double linears = double(weights.bytes()) / 2.0 - embedding;
  const double attention = 4.0 * double(c.layers * c.heads * c.head_dim) * double(kContext) / 2.0;
  const double work = double(kContext) * (2.0 * linears + attention) + 2.0 * embedding;
  const double compute_share = work * ours.at("prefill") / double(kContext) / peak;
  report.row({"prefill 512: share of the multiply-add peak", compute_share, "", "1", ">= 0.6",
              compute_share >= 0.6});
  for (const int batch : kBatches) {
    const double bytes = double(weights.bytes()) + double(batch) * double(kContext) * double(kv_bytes);
    const double share = bytes * ours.at(decode_name(batch)) / batch / bandwidth;
    report.row({"decode at batch " + std::to_string(batch) + ": share of the read bandwidth", share, "", "1",
                batch == 1 ? ">= 0.85" : "", batch != 1 || share >= 0.85});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = options_of(argc, argv);
  if (!options) {
    std::cerr << kUsage;
    return 2;
  }
  const RandomModel weights(half_billion(), 1);
  if (!options->write.empty()) {
    const Result<void> written = write_checkpoint(weights, options->write);
    if (!written) std::cerr << written.error().context << '\n';
    return written ? 0 : 1;
  }
  auto ops = make_cpu_ops(options->cpu);
  if (!ops) {
    std::cerr << ops.error().context << '\n';
    return 2;
  }
  const Report report(argc, argv);
  const int threads =
      options->cpu.threads > 0 ? options->cpu.threads : int(std::thread::hardware_concurrency());
  const Rates peer = options->peer ? peer_rates(weights, threads) : Rates{};
  Measured measured(weights, **ops);
  const Rates ours = measured.rates();
  const std::string kernels = ", " + std::string((*ops)->name());
  report_rate(report, ours, peer, "prefill", "prefill of 512 tokens" + kernels);
  for (const int batch : kBatches) {
    report_rate(report, ours, peer, decode_name(batch),
                "decode at batch " + std::to_string(batch) + ", context 512" + kernels);
  }
  report_shares(report, ours, weights, measured.kv_bytes_per_token(), limits_of((*ops)->name(), threads));
}
