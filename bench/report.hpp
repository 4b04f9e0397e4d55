// The rows that every benchmark prints: a table for people, or one JSON object a row.
#pragma once

#include <string>

namespace sangam {

/// One measured value beside what it is measured against.
struct BenchRow {
  std::string metric;
  double value = 0.0;
  std::string unit;
  std::string reference;  ///< A peer, a physical limit or a paper; empty: none.
  std::string target;     ///< "<= 2"; empty: none.
  bool ok = true;         ///< Whether the target is met.
};

/// Prints the environment when it is made and each row at once, so that a long benchmark shows progress.
class Report {
 public:
  /// `--json` among the arguments: rows alone, as JSON, with just the keys of BenchRow.
  Report(int argc, const char* const* argv);

  void row(const BenchRow& row) const;

  /// Four significant digits.
  [[nodiscard]] static std::string number(double value);

 private:
  void print_environment() const;

  bool json_ = false;
};

}  // namespace sangam
