// A holder for tests: a store of descriptors, its socket, and the thread that serves it.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gpu/device/descriptor_store.hpp"

namespace sangam {

/// Its folder lives as long as it does.
class StoreHouse {
 public:
  StoreHouse() {
    std::filesystem::create_directories(folder);
    DescriptorStoreOptions options;
    options.path = socket();
    options.descriptors_max = 64;
    store_ = DescriptorStore::open(std::move(options)).value();
    thread_ = std::thread([this] {
      pollfd waiting[] = {{store_->file(), POLLIN, 0}, {stop_.number(), POLLIN, 0}};
      while (poll(waiting, 2, -1) > 0 && waiting[1].revents == 0) store_->serve_ready();
    });
  }
  ~StoreHouse() {
    (void)eventfd_write(stop_.number(), 1);
    thread_.join();
    store_.reset();
    std::filesystem::remove_all(folder);
  }
  [[nodiscard]] std::string socket() const { return (folder / "holder.sock").string(); }

  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("sangam-kept-" + std::to_string(getpid()));

 private:
  FileDescriptor stop_{eventfd(0, EFD_CLOEXEC)};
  std::unique_ptr<DescriptorStore> store_;
  std::thread thread_;
};

}  // namespace sangam
