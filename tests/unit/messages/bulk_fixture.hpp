// What the tests of the bulk channel share: nodes that know each other, a shelf of named bytes, reading to the end.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "messages/mesh/bulk.hpp"
#include "tests/unit/messages/mesh_fixture.hpp"

namespace sangam::testing {

inline const ActorName kOwner("worker/1");
inline const Bytes kAnySize{1 << 30};

/// Bytes that no other seed makes.
inline std::vector<std::byte> bytes_by(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint32_t x = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    x = x * 1664525U + 1013904223U;
    byte = std::byte(x >> 24);
  }
  return bytes;
}

/// Offers its bytes cut into pieces of `piece`; counts who holds what.
class NamedBytes final : public BlobShelf {
 public:
  explicit NamedBytes(std::size_t piece = SIZE_MAX) : piece_(piece) {}
  void put(const std::string& name, std::vector<std::byte> bytes) { blobs_[name] = std::move(bytes); }
  [[nodiscard]] Result<Blob> find(const BlobName& name) override {
    const auto found = blobs_.find(name.text());
    if (found == blobs_.end()) return make_error(ErrorCode::not_found, "no " + name.text());
    Blob blob{{}, {}, pins_};
    blob.hash.fill(std::uint8_t(found->second.size()));
    std::span<const std::byte> left = found->second;
    while (!left.empty()) {
      blob.pieces.push_back(left.first(std::min(piece_, left.size())));
      left = left.subspan(blob.pieces.back().size());
    }
    return blob;
  }
  [[nodiscard]] long pins() const { return pins_.use_count() - 1; }

 private:
  std::size_t piece_;
  std::map<std::string, std::vector<std::byte>> blobs_;
  std::shared_ptr<const int> pins_ = std::make_shared<const int>(0);
};

inline BulkOptions bulk_options(const MeshOptions& node, const std::string& owner_node = "a") {
  BulkOptions options;
  options.node = node;
  options.owners = {{kOwner, NodeName(owner_node)}};
  return options;
}

/// Waits until the whole of the next blob is there.
inline Result<std::vector<std::byte>> read_blob(BlobPull& pull) {
  std::vector<std::byte> bytes;
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < end) {
    const auto part = pull.next(Millis(100));
    if (!part) return part.error();
    if (!*part) continue;
    bytes.insert(bytes.end(), (*part)->bytes.begin(), (*part)->bytes.end());
    if ((*part)->is_last()) return bytes;
  }
  return make_error(ErrorCode::expired, "no whole blob came");
}

/// Until the pull is over.
inline Error last_error(BlobPull& pull) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < end) {
    if (const auto part = pull.next(Millis(100)); !part) return part.error();
  }
  return make_error(ErrorCode::expired, "it never ended");
}

}  // namespace sangam::testing
