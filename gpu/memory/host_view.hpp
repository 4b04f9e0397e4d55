// Reading a device's memory on the host.
#pragma once

#include <memory>
#include <span>

#include "gpu/device/device.hpp"

namespace sangam {

/// Reads in place where the host can, else copies into a buffer of the device's.
class HostView {
 public:
  /// `largest`: the most that one `read` will ask for. `device` outlives the view.
  static Result<HostView> create(Device& device, Bytes largest);

  /// Valid until the next read.
  Result<std::span<const std::byte>> read(std::span<const std::byte> bytes);

 private:
  HostView(Device& device, std::unique_ptr<HostBuffer> buffer)
      : device_(&device), buffer_(std::move(buffer)) {}

  Device* device_;
  std::unique_ptr<HostBuffer> buffer_;  ///< Null: the host reads in place.
};

}  // namespace sangam
