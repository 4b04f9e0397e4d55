// The budget of host memory.
#include "gpu/residency/host_segments.hpp"

#include <string>

namespace sangam {

HostSegment::HostSegment(std::unique_ptr<HostBuffer> buffer, Bytes& used) : buffer_(std::move(buffer)), used_(used) {
  used_ += Bytes(std::int64_t(bytes().size()));
}

HostSegment::~HostSegment() {
  used_ -= Bytes(std::int64_t(bytes().size()));
}

std::shared_ptr<const HostSegment> HostSegments::find(const Digest& digest, Bytes size) const {
  const auto found = segments_.find(digest);
  auto segment = found == segments_.end() ? nullptr : found->second.lock();
  return segment && Bytes(std::int64_t(segment->bytes().size())) == size ? segment : nullptr;
}

Result<std::shared_ptr<const HostSegment>> HostSegments::make(Bytes size) {
  if (used_ + size > max_) {
    return make_error(ErrorCode::exhausted, "host memory for weights: bytes needed=" + std::to_string(size.count()) +
                                                ", used=" + std::to_string(used_.count()) + " of " +
                                                std::to_string(max_.count()) + "; allow more, or unload a model");
  }
  auto buffer = device_.host_buffer(size);
  if (!buffer) return buffer.error();
  return std::make_shared<const HostSegment>(std::move(*buffer), used_);
}

void HostSegments::enter(const Digest& digest, const std::shared_ptr<const HostSegment>& segment) {
  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  segments_.emplace(digest, segment);
}

}  // namespace sangam
