// A mesh of processes as a benchmark's child: started, awaited, ended.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/ask.hpp"
#include "cli/signals.hpp"

namespace sangam {

[[noreturn]] inline void give_up(const std::string& why) {
  std::cerr << "benchmark: " << why << std::endl;
  std::exit(1);
}

inline void await_ready(const std::string& url) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!check_health(url + "/readyz")) {
    if (std::chrono::steady_clock::now() > end) give_up("not ready within 60 s: " + url);
    (void)wait_for_signal(Millis(20));
  }
}

/// `sangam up --processes` as a child, on any free port; its address is the first line that it prints.
class Processes {
 public:
  Processes(const std::string& config, const std::string& state) {
    int ends[2];
    if (pipe(ends) != 0) give_up("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], 1);
      unblock_signals();
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // Also when the benchmark gives up.
      const auto binary = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sangam").string();
      execl(binary.c_str(), "sangam", "up", "--processes", "--listen", "127.0.0.1:0", "--config", config.c_str(), "--state",
            state.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    std::string line;
    for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    close(ends[0]);
    constexpr std::string_view greeting = "listening on ";
    if (!line.starts_with(greeting)) give_up("sangam up said: " + line);
    url = line.substr(greeting.size());
  }
  ~Processes() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t supervisor() const { return pid_; }

  std::string url;

 private:
  pid_t pid_ = 0;
};

}  // namespace sangam
