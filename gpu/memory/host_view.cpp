// The copy behind a view.
#include "gpu/memory/host_view.hpp"

#include <algorithm>

namespace sangam {

Result<HostView> HostView::create(Device& device, Bytes largest) {
  if (device.host_access()) return HostView(device, nullptr);
  auto buffer = device.host_buffer(std::max(largest, Bytes{1}));
  if (!buffer) return buffer.error();
  return HostView(device, std::move(*buffer));
}

Result<std::span<const std::byte>> HostView::read(std::span<const std::byte> bytes) {
  if (!buffer_) return bytes;
  const CopyPiece piece{buffer_->bytes().data(), bytes.data(), bytes.size()};
  if (auto copied = device_->copy({&piece, 1}); !copied) return copied.error();
  return std::span<const std::byte>(buffer_->bytes().first(bytes.size()));
}

}  // namespace sangam
