// A part of a test that runs in a process of its own: this binary again, with one skipped case switched on.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

namespace sangam::tests {

/// The variable that gives a child the folder to work in.
inline constexpr const char* kChildFolder = "SANGAM_TEST_FOLDER";

/// In a child: sends one line to the parent.
inline void report(const std::string& line) {
  const std::string text = "child: " + line + "\n";
  REQUIRE(::write(STDOUT_FILENO, text.data(), text.size()) == ssize_t(text.size()));
}

class Child {
 public:
  Child(const std::string& case_name, const std::filesystem::path& folder) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    ::setenv(kChildFolder, folder.c_str(), 1);
    id_ = ::fork();
    REQUIRE(id_ >= 0);
    if (id_ == 0) {  // only calls that are safe after a fork of a process with threads
      ::dup2(ends[1], STDOUT_FILENO);
      const std::string filter = "--test-case=" + case_name;
      ::execl("/proc/self/exe", "child", filter.c_str(), "--no-skip", "--no-intro",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ > 0) kill();
    ::close(output_);
  }

  /// The next line that the child reported; empty when it has ended.
  std::string next_report() {
    for (std::string line = next_line(); !line.empty(); line = next_line())
      if (line.starts_with("child: ")) return line.substr(7);
    return {};
  }

  void kill() {
    ::kill(id_, SIGKILL);
    wait();
  }

  /// True if every check of the child held.
  bool wait() {
    int status = 0;
    ::waitpid(id_, &status, 0);
    id_ = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  /// What the child printed, for the message of a failing test.
  [[nodiscard]] const std::string& printed() const { return printed_; }

 private:
  /// With its end of line, so that only the end of the output is empty.
  std::string next_line() {
    std::string line;
    char byte = 0;
    while (::read(output_, &byte, 1) == 1) {
      line += byte;
      if (byte == '\n') break;
    }
    printed_ += line;
    return line;
  }

  pid_t id_ = 0;
  int output_ = -1;
  std::string printed_;
};

}  // namespace sangam::tests
