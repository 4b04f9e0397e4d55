// Divides each operation over the threads: by output rows, by activation rows or by (sequence, head). No
// division changes a result, so it follows cost alone.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "gpu/kernels/cpu/cpu_ops.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpu/kernels/cpu/kernels.hpp"
#include "gpu/kernels/cpu/thread_pool.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// Below this many multiplications a second thread costs more than it saves.
constexpr std::int64_t kWorthThreads = 32 * 1024;

struct Share {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Part `part` of `parts` of [0, count), cut at multiples of `grain`.
Share share_of(std::int64_t count, int part, int parts, std::int64_t grain) {
  const std::int64_t grains = (count + grain - 1) / grain;
  return {std::min(count, grains * part / parts * grain),
          std::min(count, grains * (part + 1) / parts * grain)};
}

/// Floats that grow to the largest size asked for and stay.
class Scratch {
 public:
  float* at_least(std::size_t count) {
    if (floats_.size() < count) floats_.resize(std::max(count, floats_.size() * 2));
    return floats_.data();
  }

 private:
  std::vector<float> floats_;
};

using cpu::LaneOrder;

class CpuOps final : public Ops {
 public:
  CpuOps(const cpu::Kernels& kernels, int threads) : kernels_(kernels), pool_(threads) {}

  [[nodiscard]] std::string_view name() const override { return kernels_.name; }

  void embed(const Linear& table, std::span<const TokenId> tokens, float* out) override;
  void rms_norm(const Rows& x, const float* weight, float epsilon, float* out) override;
  void linear(const Rows& x, std::span<const Projection> projections) override;
  void rotate(float* heads, std::int64_t rows, std::int64_t heads_per_row, const Rotation& by) override;
  void store_kv(const KvLayer& kv, const float* k, const float* v) override;
  void attention(const KvLayer& kv, const AttentionShape& shape, const float* q, float* out) override;
  void swiglu(float* gate, const float* up, std::int64_t count) override;

 private:
  /// work(first, last) over [0, count), on all threads if `cost` multiplications are worth it.
  template <class Work>
  void divide(std::int64_t count, std::int64_t grain, std::int64_t cost, const Work& work) {
    divide_numbered(count, grain, cost,
                    [&](std::int64_t first, std::int64_t last, int) { work(first, last); });
  }
  /// The same, and which of the pool's threads it is.
  template <class Work>
  void divide_numbered(std::int64_t count, std::int64_t grain, std::int64_t cost, const Work& work) {
    if (cost < kWorthThreads || pool_.threads() == 1) return work(std::int64_t{0}, count, 0);
    pool_.run([&](int part) {
      const Share share = share_of(count, part, pool_.threads(), grain);
      if (share.first < share.last) work(share.first, share.last, part);
    });
  }

  /// x in each order that a projection asks for.
  using Packed = std::array<cpu::PackedRows, 2>;

  cpu::PackedRows pack(const Rows& x, LaneOrder order, float* packed);
  Packed pack_for(const Rows& x, std::span<const Projection> projections);
  std::vector<cpu::PackedRows> lower(const Packed& x, std::span<const Projection> projections);
  void project(std::span<const cpu::ProjectionRange> whole, std::int64_t multiplications);

  const cpu::Kernels& kernels_;
  ThreadPool pool_;
  std::array<Scratch, 2> packed_;  ///< By lane order.
  Scratch packed_low_rank_;
  Scratch low_rank_;
  Scratch sums_;
  Scratch expanded_;
  Scratch attention_;
};

void CpuOps::embed(const Linear& table, std::span<const TokenId> tokens, float* out) {
  const Matrix& matrix = table.canonical;
  const auto columns = std::size_t(matrix.columns);
  const auto coded_row = [columns](const Matrix& m, TokenId token, float* row) {
    const auto stride = std::size_t(m.row_stride());
    decode_row(*m.code, {m.bytes + token * stride, stride}, {row, columns});
  };
  std::vector<float> delta(table.delta.bytes == nullptr ? 0 : columns);
  for (const TokenId token : tokens) {
    SANGAM_ASSERT(token < matrix.rows, token, matrix.rows);
    if (matrix.code) {
      coded_row(matrix, token, out);
    } else {
      kernels_.widen(matrix.bytes + token * std::size_t(matrix.row_stride()), matrix.dtype, matrix.columns, out);
    }
    if (!table.scale.empty()) {
      for (std::size_t k = 0; k < columns; ++k) out[k] *= table.scale[token];
    }
    if (!delta.empty()) {
      coded_row(table.delta, token, delta.data());
      for (std::size_t k = 0; k < columns; ++k) out[k] += delta[k];
    }
    out += columns;
  }
}

void CpuOps::rms_norm(const Rows& x, const float* weight, float epsilon, float* out) {
  divide(x.count, 1, x.count * x.width, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t offset = first * x.width;
    kernels_.rms_norm({x.values + offset, last - first, x.width}, weight, epsilon, out + offset);
  });
}

/// Floats from one packed row to the next. One line more than needed: rows a multiple of 4096 bytes apart would compete
/// for the same lines of L1.
std::int64_t packed_stride(std::int64_t width) { return groups_of(width) * kCodeGroup + 16; }

cpu::PackedRows CpuOps::pack(const Rows& x, LaneOrder order, float* packed) {
  const std::int64_t stride = packed_stride(x.width);
  divide(x.count, 1, x.count * x.width, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      kernels_.pack(x.values + row * x.width, x.width, order, packed + row * stride);
    }
  });
  return {packed, x.count, stride};
}

CpuOps::Packed CpuOps::pack_for(const Rows& x, std::span<const Projection> projections) {
  Packed packed;
  const auto need = [&](LaneOrder order) {
    cpu::PackedRows& rows = packed[std::size_t(order)];
    if (rows.values != nullptr) return;
    float* const memory = packed_[std::size_t(order)].at_least(std::size_t(x.count * packed_stride(x.width)));
    rows = pack(x, order, memory);
  };
  bool shifts = false;
  for (const Projection& p : projections) {
    need(cpu::order_of(*p.weight));
    if (p.weight->down.bytes != nullptr) need(cpu::order_of(p.weight->down));
    shifts = shifts || !p.weight->shift.empty();
  }
  if (!shifts) return packed;
  float* const sums = sums_.at_least(std::size_t(x.count));
  for (std::int64_t row = 0; row < x.count; ++row) sums[row] = kernels_.sum(x.values + row * x.width, x.width);
  for (cpu::PackedRows& rows : packed) rows.sums = sums;
  return packed;
}

/// down x of each projection that has a low-rank part, packed for its `up`.
std::vector<cpu::PackedRows> CpuOps::lower(const Packed& x, std::span<const Projection> projections) {
  std::vector<cpu::PackedRows> lowered(projections.size());
  std::vector<Linear> maps(projections.size());
  std::vector<cpu::ProjectionRange> whole;
  const std::int64_t count = std::max(x[0].count, x[1].count);
  std::int64_t ranks = 0, strides = 0, multiplications = 0;
  for (const Projection& p : projections) {
    if (p.weight->down.bytes == nullptr) continue;
    ranks += p.weight->down.rows;
    strides += packed_stride(p.weight->down.rows);
    multiplications += p.weight->down.rows * p.weight->down.columns * count;
  }
  if (ranks == 0) return lowered;
  float* out = low_rank_.at_least(std::size_t(ranks * count));
  float* packed = packed_low_rank_.at_least(std::size_t(strides * count));
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Matrix& down = projections[i].weight->down;
    if (down.bytes == nullptr) continue;
    maps[i].canonical = down;
    whole.push_back({x[std::size_t(cpu::order_of(down))], {}, {&maps[i], nullptr, out}, 0, down.rows});
    out += down.rows * count;
  }
  project(whole, multiplications);
  auto done = whole.begin();
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Linear& weight = *projections[i].weight;
    if (weight.down.bytes == nullptr) continue;
    const std::int64_t rank = weight.down.rows;
    lowered[i] = pack({(done++)->projection.out, count, rank}, cpu::order_of(weight.up), packed);
    packed += packed_stride(rank) * count;
  }
  return lowered;
}

/// The rows of all ranges, divided over the threads.
void CpuOps::project(std::span<const cpu::ProjectionRange> whole, std::int64_t multiplications) {
  std::int64_t outputs = 0;
  bool expands = false;
  for (const cpu::ProjectionRange& range : whole) {
    outputs += range.last;
    expands = expands || !cpu::is_plain(*range.projection.weight);
  }
  float* const scratch =
      expands ? expanded_.at_least(std::size_t(cpu::kExpandedFloats * pool_.threads())) : nullptr;
  divide_numbered(outputs, 8, multiplications, [&](std::int64_t first, std::int64_t last, int part) {
    for (cpu::ProjectionRange range : whole) {
      const std::int64_t rows = range.last;
      range.first = std::clamp(first, std::int64_t{0}, rows);
      range.last = std::clamp(last, std::int64_t{0}, rows);
      range.scratch = scratch == nullptr ? nullptr : scratch + part * cpu::kExpandedFloats;
      if (range.first < range.last) kernels_.project(range);
      first -= rows;
      last -= rows;
    }
  });
}

void CpuOps::linear(const Rows& x, std::span<const Projection> projections) {
  if (x.count == 0) return;
  std::vector<cpu::ProjectionRange> whole;
  std::int64_t multiplications = 0;
  const Packed packed = pack_for(x, projections);
  const std::vector<cpu::PackedRows> lowered = lower(packed, projections);
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    const Matrix& matrix = p.weight->canonical;
    SANGAM_ASSERT(matrix.columns == x.width, matrix.columns, x.width);
    whole.push_back({packed[std::size_t(cpu::order_of(*p.weight))], lowered[i], p, 0, matrix.rows});
    multiplications += matrix.rows * x.width * x.count;
  }
  project(whole, multiplications);
}

void CpuOps::rotate(float* heads, std::int64_t rows, std::int64_t heads_per_row, const Rotation& by) {
  const std::int64_t half = by.head_dim / 2;
  divide(rows, 1, rows * heads_per_row * by.head_dim, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      kernels_.rotate(heads + row * heads_per_row * by.head_dim, heads_per_row, by.cosine + row * half,
                      by.sine + row * half, by.head_dim);
    }
  });
}

void CpuOps::store_kv(const KvLayer& kv, const float* k, const float* v) {
  const KvLayout& layout = kv.layout;
  const std::int64_t dim = layout.head_dim;
  for (const KvRows& rows : kv.sequences) {
    SANGAM_ASSERT(std::int64_t(rows.pages.size()) * layout.tokens_per_page >= rows.position + rows.count,
                  rows.pages.size(), layout.tokens_per_page, rows.position, rows.count);
    for (std::int64_t at = rows.position; at < rows.position + rows.count; ++at) {
      const std::int64_t slot = at % layout.tokens_per_page;
      auto* page =
          reinterpret_cast<std::uint16_t*>(kv.arena.at(rows.pages[std::size_t(at / layout.tokens_per_page)]));
      for (std::int64_t head = 0; head < layout.kv_heads; ++head, k += dim, v += dim) {
        kernels_.to_half(k, dim, page + layout.key_offset(kv.layer, head) + slot * dim);
        kernels_.to_half(v, dim, page + layout.value_offset(kv.layer, head) + slot * dim);
      }
    }
  }
}

void CpuOps::attention(const KvLayer& kv, const AttentionShape& shape, const float* q, float* out) {
  const KvLayout& layout = kv.layout;
  SANGAM_ASSERT(shape.heads % layout.kv_heads == 0, shape.heads, layout.kv_heads);
  const std::int64_t group = shape.heads / layout.kv_heads;
  const std::int64_t tile = std::max<std::int64_t>(1, cpu::kAttentionPairs / group);
  const std::int64_t scratch =
      kernels_.attention_scratch(std::max(group, cpu::kAttentionPairs), layout.head_dim);
  float* memory = attention_.at_least(std::size_t(scratch * pool_.threads()));
  std::int64_t cost = 0;
  for (const KvRows& s : kv.sequences)
    cost += s.count * (s.position + s.count) * shape.heads * layout.head_dim;
  const int parts = cost < kWorthThreads ? 1 : pool_.threads();

  // Later rows see more positions: tiles are dealt in turn, so that each thread gets early and late ones.
  const auto work = [&](int part) {
    std::int64_t turn = 0;
    std::int64_t offset = 0;
    for (const KvRows& sequence : kv.sequences) {
      for (std::int64_t first = 0; first < sequence.count; first += tile) {
        for (std::int64_t head = 0; head < layout.kv_heads; ++head) {
          if (turn++ % parts != part) continue;
          kernels_.attend({&kv, &shape, &sequence, head, first, std::min(tile, sequence.count - first),
                           q + offset, out + offset, memory + part * scratch});
        }
      }
      offset += sequence.count * shape.heads * layout.head_dim;
    }
  };
  if (parts == 1) return work(0);
  pool_.run(work);
}

void CpuOps::swiglu(float* gate, const float* up, std::int64_t count) {
  // The grain keeps every thread's vectors where one thread's would be: the incomplete one is last.
  divide(count, 64, count * 8, [&](std::int64_t first, std::int64_t last) {
    kernels_.swiglu(gate + first, up + first, last - first);
  });
}

const cpu::Kernels* kernels_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return &cpu::avx512_kernels();
  if (isa == Isa::avx2) return &cpu::avx2_kernels();
#endif
  return isa == Isa::portable ? &cpu::portable_kernels() : nullptr;
}

constexpr struct {
  Isa isa;
  std::string_view name;
} kIsas[] = {{Isa::best, "best"}, {Isa::avx512, "avx512"}, {Isa::avx2, "avx2"}, {Isa::portable, "portable"}};

std::string_view name_of(Isa isa) {
  return std::find_if(std::begin(kIsas), std::end(kIsas),
                      [isa](const auto& known) { return known.isa == isa; })
      ->name;
}

#if defined(__x86_64__)
/// clang 16 does not know this feature by name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

Result<Isa> isa_named(std::string_view name) {
  for (const auto& known : kIsas) {
    if (known.name == name) return known.isa;
  }
  return make_error(ErrorCode::invalid_input, "instruction set \"" + std::string(name) +
                                                  "\" is not known; use best, avx512, avx2 or portable");
}

bool supported(Isa isa) {
  if (isa == Isa::portable || isa == Isa::best) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == Isa::avx2) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  }
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

Result<std::unique_ptr<Ops>> make_cpu_ops(const CpuOptions& options) {
  Isa isa = options.isa;
  for (const Isa candidate : {Isa::avx512, Isa::avx2, Isa::portable}) {
    if (isa == Isa::best && supported(candidate)) isa = candidate;
  }
  if (!supported(isa)) {
    return make_error(ErrorCode::invalid_input, "cpu kernels \"" + std::string(name_of(isa)) +
                                                    "\": this processor lacks the instructions; use best");
  }
  return std::unique_ptr<Ops>(new CpuOps(*kernels_of(isa), options.threads));
}

}  // namespace sangam
