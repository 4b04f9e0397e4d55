// A memory file beside the pool that says what lies in it, for whoever serves from it next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/device/file_descriptor.hpp"
#include "gpu/memory/manifest_record.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {

/// A manifest speaks of one pool only, written by the same version of this code.
struct ManifestIdentity {
  Bytes page{};
  Pages pages{};
  Digest caller;  ///< Of whatever else must be the same: host, device, configuration.
};

/// Two places, written by turns: a process that is killed while it writes leaves the record before. A record
/// has a sequence number and a checksum (XXH3-128).
class Manifest {
 public:
  /// The most that one record may take. What is not used takes no memory.
  static constexpr std::size_t kRecordBytesMax = std::size_t{64} << 20;

  static Result<Manifest> create(const ManifestIdentity& identity);
  /// Of a process that is gone.
  static Result<Manifest> adopt(FileDescriptor file, const ManifestIdentity& identity);

  /// From now on, this is what `read` finds. To take a table out of service: write a record without it, then
  /// let the table go.
  Result<void> write(const ManifestRecord& record);
  /// The newest record that is whole. An error where there is none: nothing may then be taken from the pool.
  [[nodiscard]] Result<ManifestRecord> read() const;

  /// For whoever is to keep it; the receiver's to close.
  [[nodiscard]] Result<FileDescriptor> file() const;

 private:
  struct Found {
    std::uint64_t sequence = 0;
    std::vector<std::byte> body;
  };

  Manifest(FileDescriptor file, const Digest& identity) : file_(std::move(file)), identity_(identity) {}
  [[nodiscard]] std::optional<Found> found_in(std::uint64_t place) const;
  [[nodiscard]] std::optional<Found> newest() const;

  FileDescriptor file_;
  Digest identity_;
  std::uint64_t sequence_ = 0;  ///< Of the newest record; 0: there is none.
};

}  // namespace sangam
