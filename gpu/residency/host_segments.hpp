// Copies of weights in host memory, named by content: what models that sleep warm are woken from.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "gpu/device/device.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {

/// Counts against the budget as long as somebody holds it.
class HostSegment {
 public:
  HostSegment(std::unique_ptr<HostBuffer> buffer, Bytes& used);
  ~HostSegment();
  HostSegment(const HostSegment&) = delete;
  HostSegment& operator=(const HostSegment&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return buffer_->bytes(); }

 private:
  std::unique_ptr<HostBuffer> buffer_;
  Bytes& used_;
};

/// Outlives its segments. Whoever makes a segment fills it before anyone else looks for it.
class HostSegments {
 public:
  HostSegments(Device& device, Bytes max) : device_(device), max_(max) {}

  /// Null where there is none.
  [[nodiscard]] std::shared_ptr<const HostSegment> find(const Digest& digest, Bytes size) const;
  /// Not to be found until it is entered. `exhausted` beyond the budget.
  Result<std::shared_ptr<const HostSegment>> make(Bytes size);
  void enter(const Digest& digest, const std::shared_ptr<const HostSegment>& segment);

  [[nodiscard]] Bytes used() const { return used_; }
  [[nodiscard]] Bytes max() const { return max_; }

 private:
  Device& device_;
  Bytes max_;
  Bytes used_;
  std::unordered_map<Digest, std::weak_ptr<const HostSegment>> segments_;
};

}  // namespace sangam
