// The memory of one CPU device: a memfd, which may outlive the process that made it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gpu/device/cpu/mapped_range.hpp"
#include "gpu/device/device.hpp"

namespace sangam {

struct CpuDeviceOptions {
  Bytes size{};  ///< Rounded down to whole pages.
  Bytes page{};  ///< A multiple of the machine's own page.
};

/// Has its memory when it is made, so that no later write can fail. The file cannot shrink: whoever maps it
/// is safe from the others.
class CpuDevice final : public Device {
 public:
  /// All zero.
  static Result<std::unique_ptr<CpuDevice>> create(CpuDeviceOptions options);
  /// Of a device that another process made, with all that lies in it. Size and page must be what they were.
  static Result<std::unique_ptr<CpuDevice>> adopt(FileDescriptor file, CpuDeviceOptions options);

  [[nodiscard]] bool adopted() const { return adopted_; }
  /// For whoever is to keep the memory; the receiver's to close.
  [[nodiscard]] Result<FileDescriptor> file() const;

  [[nodiscard]] PageArena arena() const override { return {range_.bytes().data(), page_bytes_}; }
  [[nodiscard]] Pages pages() const override {
    return Pages(std::int64_t(range_.bytes().size() / page_bytes_));
  }
  [[nodiscard]] bool host_access() const override { return true; }
  Result<std::unique_ptr<PageSpan>> map(std::span<const PageExtent> extents, Access access) override;
  Result<std::vector<SharedPages>> share(std::span<const PageExtent> extents) override;
  Result<std::unique_ptr<PageSpan>> import(std::span<const SharedPages> shared, Access access) override;
  Result<std::unique_ptr<HostBuffer>> host_buffer(Bytes size) override;
  Result<void> copy(std::span<const CopyPiece> pieces) override;

 private:
  CpuDevice(FileDescriptor file, MappedRange range, std::size_t page_bytes, bool adopted);
  static Result<std::unique_ptr<CpuDevice>> open(FileDescriptor file, CpuDeviceOptions options, bool adopted);
  [[nodiscard]] FilePiece piece_of(PageExtent extent) const;

  FileDescriptor file_;
  MappedRange range_;
  std::size_t page_bytes_;
  bool adopted_;
};

}  // namespace sangam
