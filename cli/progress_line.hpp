// A line on the terminal that is written over itself, where somebody looks.
#pragma once

#include <mutex>
#include <string>

namespace sangam {

/// Cleared when it ends. From any thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);

 private:
  bool shown_;
  std::mutex mutex_;
};

/// A bar of thirty places; `share` from 0 to 1.
[[nodiscard]] std::string progress_bar(double share);

}  // namespace sangam
