// Wakes the node's thread out of its poll.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "messages/vocabulary/assert.hpp"

namespace sangam::mesh {

/// An eventfd that is written once until it is cleared, however often it rings.
class Wake {
 public:
  Wake() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    SANGAM_ASSERT(fd_ >= 0, "no file descriptor left");
  }
  ~Wake() { ::close(fd_); }
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  void ring() {
    if (rung_.exchange(true)) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(fd_, &one, sizeof one);
  }
  /// Before looking at what the bell may have announced.
  void clear() {
    std::uint64_t count = 0;
    [[maybe_unused]] auto read = ::read(fd_, &count, sizeof count);
    rung_ = false;
  }

 private:
  int fd_;
  std::atomic<bool> rung_{false};
};

}  // namespace sangam::mesh
