// The environment is read from the system; nothing about it is configured.
#include "bench/report.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

namespace sangam {
namespace {

/// The value of the first "key : value" line of a file of /proc; empty where there is none.
std::string first_value(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

}  // namespace

Report::Report(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) json_ |= std::strcmp(argv[i], "--json") == 0;
  if (!json_) print_environment();
}

std::string Report::number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) >= 1e4 ? "%.0f" : "%.4g", value);
  return text;
}

void Report::row(const BenchRow& row) const {
  const std::string value = number(row.value);
  if (json_) {
    const std::string finite = std::isfinite(row.value) ? value : "null";
    std::printf("{\"metric\":%s,\"value\":%s,\"unit\":%s,\"reference\":%s,\"target\":%s,\"ok\":%s}\n",
                quoted(row.metric).c_str(), finite.c_str(), quoted(row.unit).c_str(), quoted(row.reference).c_str(),
                quoted(row.target).c_str(), row.ok ? "true" : "false");
  } else {
    const char* verdict = row.target.empty() ? "" : row.ok ? "ok" : "MISSED";
    std::printf("%-72s %10s %-8s %-12s %-7s %s\n", row.metric.c_str(), value.c_str(), row.unit.c_str(),
                row.target.c_str(), verdict, row.reference.c_str());
  }
  std::fflush(stdout);
}

void Report::print_environment() const {
  std::printf("cpu: %s, %u threads; memory: %s; compiler: %s\n\n", first_value("/proc/cpuinfo", "model name").c_str(),
              std::thread::hardware_concurrency(), first_value("/proc/meminfo", "MemTotal").c_str(), __VERSION__);
  std::printf("%-72s %10s %-8s %-12s %-7s %s\n", "metric", "value", "unit", "target", "", "reference");
}

}  // namespace sangam
