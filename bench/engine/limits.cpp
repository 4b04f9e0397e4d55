// Plain loops over wide vectors, built for this very machine.
#include "bench/engine/limits.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/engine/huge_pages.hpp"
#include "gpu/kernels/cpu/thread_pool.hpp"

namespace sangam {
namespace {

/// A vector of fp32.
template <int kLanes>
struct Lanes {
  typedef float Floats __attribute__((vector_size(kLanes * sizeof(float)), may_alias));
};
typedef std::uint64_t Words __attribute__((vector_size(64), may_alias));

/// The shortest pass, in seconds, on every thread at once. Passes of about a millisecond: on a machine that others use
/// too, some of them are not interrupted.
template <class Work>
double best_of(int passes, ThreadPool& pool, const Work& work) {
  double best = 1e30;
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](int part) { work(pass, part); });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Keeps the compiler from dropping a result.
template <class T>
void used(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

Words read_all(const Words* memory, std::size_t count) {
  Words a{}, b{}, c{}, d{};
  for (std::size_t i = 0; i + 4 <= count; i += 4) {
    a ^= memory[i];
    b ^= memory[i + 1];
    c ^= memory[i + 2];
    d ^= memory[i + 3];
  }
  return (a ^ b) ^ (c ^ d);
}

template <int kLanes>
void multiply_add(int rounds) {
  using Floats = typename Lanes<kLanes>::Floats;
  // Twelve chains cover the latency of two multiply-adds a cycle; unlike starts keep the compiler from merging them.
  const auto start = [](int chain) { return Floats{} + 0.01f * float(chain); };
  Floats s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3), s4 = start(4), s5 = start(5);
  Floats s6 = start(6), s7 = start(7), s8 = start(8), s9 = start(9), s10 = start(10), s11 = start(11);
  const Floats factor = Floats{} + 0.999f;
  const Floats term = Floats{} + 0.001f;
  for (int round = 0; round < rounds; ++round) {
    s0 = s0 * factor + term, s1 = s1 * factor + term, s2 = s2 * factor + term, s3 = s3 * factor + term;
    s4 = s4 * factor + term, s5 = s5 * factor + term, s6 = s6 * factor + term, s7 = s7 * factor + term;
    s8 = s8 * factor + term, s9 = s9 * factor + term, s10 = s10 * factor + term, s11 = s11 * factor + term;
  }
  used(s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11);
}

}  // namespace

double read_bandwidth(int threads) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  constexpr std::size_t kPiece = (std::size_t{32} << 20) / sizeof(Words);  // A thread's in one pass.
  ThreadPool pool(threads);
  const std::vector<std::uint64_t, HugePages<std::uint64_t>> memory(kBytes / sizeof(std::uint64_t), 1);
  const auto* words = reinterpret_cast<const Words*>(memory.data());
  // The passes go round in all of the memory, so that none finds what another has left in a cache.
  const std::size_t pieces = kBytes / sizeof(Words) / kPiece;
  const double seconds = best_of(200, pool, [&](int pass, int part) {
    const std::size_t piece = (std::size_t(pass) * std::size_t(pool.threads()) + std::size_t(part)) % pieces;
    used(read_all(words + piece * kPiece, kPiece));
  });
  return double(kPiece * std::size_t(pool.threads()) * sizeof(Words)) / seconds;
}

double multiply_add_peak(int threads, int lanes) {
  constexpr int kRounds = 100'000;
  ThreadPool pool(threads);
  const double seconds = best_of(500, pool, [lanes](int, int) {
    lanes == 16 ? multiply_add<16>(kRounds) : lanes == 8 ? multiply_add<8>(kRounds) : multiply_add<4>(kRounds);
  });
  return 2.0 * 12.0 * lanes * kRounds * pool.threads() / seconds;
}

}  // namespace sangam
