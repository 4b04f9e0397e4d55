// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace sangam {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() {
    if (number_ >= 0) close(number_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace sangam
