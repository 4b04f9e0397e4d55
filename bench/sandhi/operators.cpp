// What it costs to correct a shared matrix while multiplying by it, and what codes save: matrices that no cache holds, by
// one and by 32 rows of activations, beside the plain bf16 matrix in the same round.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/engine/huge_pages.hpp"
#include "bench/report.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"

using namespace sangam;

namespace {

using Memory = std::vector<std::byte, HugePages<std::byte>>;

struct Shape {
  std::int64_t rows;
  std::int64_t columns;

  [[nodiscard]] std::string text() const { return std::to_string(rows) + " x " + std::to_string(columns); }
};

/// One map and the bytes that it alone reads.
struct Arm {
  std::string name;
  double cost_max;  ///< Of its time over the plain one's; 0: no target.
  std::vector<Memory> memory{};
  Linear linear{};
  std::vector<double> seconds{};
};

class Arms {
 public:
  explicit Arms(const Shape& shape) : shape_(shape) {
    plain("plain bf16", 0);
    Arm& affine = plain("row scale and shift", 1.02);
    affine.linear.scale.assign(std::size_t(shape.rows), 1.1f);
    affine.linear.shift.assign(std::size_t(shape.rows), 0.1f);
    Arm& low_rank = plain("low rank 16", 0);
    low_rank.linear.down = matrix(low_rank, 16, shape.columns, {});
    low_rank.linear.up = matrix(low_rank, shape.rows, 16, {});
    Arm& delta = plain("delta in 1 bit", 1.08);
    delta.linear.delta = matrix(delta, shape.rows, shape.columns, RowCode::b1);
    for (const RowCode code : {RowCode::b8, RowCode::b4, RowCode::b3, RowCode::b2}) {
      Arm& arm = arms_.emplace_back(Arm{"weights in " + std::to_string(bits_of(code)) + " bits", 1.0});
      arm.linear.canonical = matrix(arm, shape.rows, shape.columns, code);
    }
    Arm& both = arms_.emplace_back(Arm{"weights in 3 bits, delta in 1 bit", 1.0});
    both.linear.canonical = matrix(both, shape.rows, shape.columns, RowCode::b3);
    both.linear.delta = matrix(both, shape.rows, shape.columns, RowCode::b1);
  }

  /// Each arm once a round, so that what else the machine does strikes all alike.
  void measure(Ops& ops, std::int64_t count, int rounds) {
    std::vector<float> x(std::size_t(count * shape_.columns), 0.5f), out(std::size_t(count * shape_.rows));
    for (Arm& arm : arms_) arm.seconds.clear();
    for (int round = 0; round < rounds; ++round) {
      for (Arm& arm : arms_) {
        const Projection projection[] = {{&arm.linear, nullptr, out.data(), false}};
        const auto start = std::chrono::steady_clock::now();
        ops.linear({x.data(), count, shape_.columns}, projection);
        arm.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    }
  }

  void print(const Report& report, std::int64_t count) const {
    const std::string where = shape_.text() + ", batch " + std::to_string(count) + ": ";
    const double plain = best(arms_.front());
    report.row({where + arms_.front().name, plain * 1e3, "ms", "", "", true});
    for (std::size_t i = 1; i < arms_.size(); ++i) {
      const Arm& arm = arms_[i];
      const double cost = best(arm) / plain;
      // Fewer bytes are faster only where bytes are what one waits for.
      const bool judged = arm.cost_max > 0 && (arm.cost_max > 1.0 || count == 1);
      report.row({where + arm.name, cost, "of plain", "1", judged ? "<= " + Report::number(arm.cost_max) : "",
                  !judged || cost <= arm.cost_max});
    }
  }

 private:
  Arm& plain(const std::string& name, double cost_max) {
    Arm& arm = arms_.emplace_back(Arm{name, cost_max});
    arm.linear.canonical = matrix(arm, shape_.rows, shape_.columns, {});
    return arm;
  }

  /// Random codes; bf16 of 0.01 or so.
  Matrix matrix(Arm& arm, std::int64_t rows, std::int64_t columns, std::optional<RowCode> code) {
    Matrix m{nullptr, DType::bf16, rows, columns, code};
    Memory& bytes = arm.memory.emplace_back(std::size_t(rows * m.row_stride()));
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word = random_();
      if (!code) word = (word & 0x807f'807f'807f'807full) | 0x3c00'3c00'3c00'3c00ull;
      std::copy_n(reinterpret_cast<const std::byte*>(&word), 8, bytes.begin() + std::ptrdiff_t(i));
    }
    const std::uint16_t scale = 0x0800;
    for (std::int64_t row = 0; code && row < rows; ++row) {
      std::copy_n(reinterpret_cast<const std::byte*>(&scale), 2, bytes.begin() + row * m.row_stride());
    }
    m.bytes = bytes.data();
    return m;
  }

  /// The least: what else runs only adds.
  static double best(const Arm& arm) { return *std::min_element(arm.seconds.begin(), arm.seconds.end()); }

  Shape shape_;
  std::mt19937_64 random_{1};
  std::deque<Arm> arms_;  // References to arms stay good.
};

}  // namespace

int main(int argc, char** argv) {
  CpuOptions options;
  int rounds = 15;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--threads") options.threads = std::atoi(argv[++i]);
    if (argument == "--rounds") rounds = std::max(1, std::atoi(argv[++i]));
    if (argument == "--isa" && isa_named(argv[i + 1])) options.isa = *isa_named(argv[++i]);
  }
  auto ops = make_cpu_ops(options);
  if (!ops) {
    std::cerr << ops.error().context << '\n';
    return 2;
  }
  const Report report(argc, argv);
  for (const Shape& shape : {Shape{4096, 4096}, Shape{4096, 14336}}) {
    Arms arms(shape);
    for (const std::int64_t count : {1, 32}) {
      arms.measure(**ops, count, rounds);
      arms.print(report, count);
    }
  }
}
