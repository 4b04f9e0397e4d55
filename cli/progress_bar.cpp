// Forty places, and a number behind them.
#include "cli/progress_bar.hpp"

#include <unistd.h>

#include <iostream>

namespace sangam {

void show_progress(const std::string& name, double share) {
  if (isatty(STDERR_FILENO) == 0) return;
  const auto filled = std::size_t(share * 40.0);
  std::cerr << "\r" << name << " [" << std::string(filled, '#') << std::string(40 - filled, '.') << "] "
            << int(share * 100.0) << " %" << (share >= 1.0 ? "\r\033[K" : "") << std::flush;
}

}  // namespace sangam
