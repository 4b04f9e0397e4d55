// Devices that fail when they are told to, or that the host cannot reach into; and how to see a process die.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/device/cpu/cpu_device.hpp"

namespace sangam::testing {

/// Whether `work` ends the process that runs it.
template <class Work>
bool dies(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/// Of the calls that can fail, the one after `good_calls` fails, once.
struct Fault {
  int good_calls = -1;  ///< Negative: none will fail.
  int happened = 0;

  bool strikes() {
    if (good_calls < 0) return false;
    happened += good_calls == 0;
    return good_calls-- == 0;
  }
};

class FaultyDevice : public Device {
 public:
  FaultyDevice(std::unique_ptr<Device> inner, Fault& fault) : inner_(std::move(inner)), fault_(fault) {}

  PageArena arena() const override { return inner_->arena(); }
  Pages pages() const override { return inner_->pages(); }
  bool host_access() const override { return inner_->host_access(); }
  Result<std::unique_ptr<PageSpan>> map(std::span<const PageExtent> extents, Access access) override {
    if (fault_.strikes()) return error();
    return inner_->map(extents, access);
  }
  Result<std::vector<SharedPages>> share(std::span<const PageExtent> extents) override {
    if (fault_.strikes()) return error();
    return inner_->share(extents);
  }
  Result<std::unique_ptr<PageSpan>> import(std::span<const SharedPages> shared, Access access) override {
    if (fault_.strikes()) return error();
    return inner_->import(shared, access);
  }
  Result<std::unique_ptr<HostBuffer>> host_buffer(Bytes size) override {
    if (fault_.strikes()) return error();
    return inner_->host_buffer(size);
  }
  Result<void> copy(std::span<const CopyPiece> pieces) override {
    if (fault_.strikes()) return error();
    return inner_->copy(pieces);
  }

 private:
  static Error error() { return make_error(ErrorCode::exhausted, "injected fault"); }

  std::unique_ptr<Device> inner_;
  Fault& fault_;
};

/// Its addresses are like a GPU's: only `copy` knows what is behind them; a touch by the host is fatal.
class OffHostDevice : public Device {
 public:
  explicit OffHostDevice(std::unique_ptr<Device> inner)
      : inner_(std::move(inner)), arena_(MappedRange::reserve(size_of(*inner_)).value()) {
    real_[arena_.bytes().data()] = {inner_->arena().base, size_of(*inner_)};
  }

  PageArena arena() const override { return {arena_.bytes().data(), inner_->arena().page_bytes}; }
  Pages pages() const override { return inner_->pages(); }
  bool host_access() const override { return false; }
  Result<std::unique_ptr<PageSpan>> map(std::span<const PageExtent> extents, Access access) override {
    return hidden(inner_->map(extents, access));
  }
  Result<std::vector<SharedPages>> share(std::span<const PageExtent> extents) override {
    return inner_->share(extents);
  }
  Result<std::unique_ptr<PageSpan>> import(std::span<const SharedPages> shared, Access access) override {
    return hidden(inner_->import(shared, access));
  }
  Result<std::unique_ptr<HostBuffer>> host_buffer(Bytes size) override { return inner_->host_buffer(size); }
  Result<void> copy(std::span<const CopyPiece> pieces) override {
    std::vector<CopyPiece> translated;
    for (const CopyPiece& piece : pieces)
      translated.push_back({translate(piece.to), translate(const_cast<std::byte*>(piece.from)), piece.bytes});
    return inner_->copy(translated);
  }

 private:
  struct Real {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
  };
  class Hidden : public PageSpan {
   public:
    Hidden(OffHostDevice& device, std::unique_ptr<PageSpan> real)
        : device_(device),
          real_(std::move(real)),
          range_(MappedRange::reserve(real_->bytes().size()).value()) {
      device_.real_[range_.bytes().data()] = {real_->bytes().data(), real_->bytes().size()};
    }
    ~Hidden() override { device_.real_.erase(range_.bytes().data()); }
    std::span<std::byte> bytes() const override { return range_.bytes(); }

   private:
    OffHostDevice& device_;
    std::unique_ptr<PageSpan> real_;
    MappedRange range_;
  };

  static std::size_t size_of(const Device& device) {
    return std::size_t(device.pages().count()) * device.arena().page_bytes;
  }
  Result<std::unique_ptr<PageSpan>> hidden(Result<std::unique_ptr<PageSpan>> real) {
    if (!real) return real.error();
    return std::make_unique<Hidden>(*this, std::move(*real));
  }
  std::byte* translate(std::byte* address) const {
    const auto next = real_.upper_bound(address);
    if (next == real_.begin()) return address;
    const auto& [first, real] = *std::prev(next);
    return address < first + real.bytes ? real.base + (address - first) : address;
  }

  std::unique_ptr<Device> inner_;
  MappedRange arena_;
  std::map<std::byte*, Real> real_;  ///< By the addresses that the device shows.
};

}  // namespace sangam::testing
