// Standard error, so that what a command prints can be piped.
#include "cli/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace sangam {

ProgressLine::ProgressLine() : shown_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  std::cerr << "\r" << text << "\033[K" << std::flush;
}

std::string progress_bar(double share) {
  constexpr int kPlaces = 30;
  const int full = int(std::clamp(share, 0.0, 1.0) * kPlaces);
  std::string bar;
  for (int i = 0; i < kPlaces; ++i) bar += i < full ? "█" : "░";
  return bar;
}

}  // namespace sangam
