// The holder: keeps the memory of this host's workers while they die and come back.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "gpu/device/descriptor_store.hpp"

namespace sangam {

/// Serves at a socket, on a thread of its own. What it keeps ends with it, as far as no worker maps it.
class Holder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Holder>> start(const std::string& socket);
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  Holder(std::unique_ptr<DescriptorStore> store, FileDescriptor stop);
  void serve();

  std::unique_ptr<DescriptorStore> store_;
  FileDescriptor stop_;  ///< Readable when it is time to end.
  std::thread thread_;
};

}  // namespace sangam
