// The file behind a manifest: two places, each with a header and a record.
#include "gpu/memory/manifest.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace sangam {
namespace {

constexpr std::array<char, 8> kMagic{'s', 'a', 'n', 'g', 'm', 'a', 'n', 'i'};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kPlaces = 2;

/// As it lies in the file, in the byte order of the machine: it never leaves the machine.
struct ManifestHeader {
  std::array<char, 8> magic = kMagic;
  std::uint64_t version = kVersion;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  Digest identity;
  Digest checksum;  ///< Of the header with this field zero, and then the record.
};
static_assert(sizeof(ManifestHeader) == 64);

constexpr std::uint64_t kPlaceBytes = Manifest::kRecordBytesMax + sizeof(ManifestHeader);

Digest checksum_of(ManifestHeader header, std::span<const std::byte> body) {
  header.checksum = digest_of(body);
  return digest_of(std::as_bytes(std::span(&header, 1)));
}

Digest digest_of_identity(const ManifestIdentity& identity) {
  const std::string text = "page " + std::to_string(identity.page.count()) + " pages " +
                           std::to_string(identity.pages.count()) + " caller " + hex_of(identity.caller);
  return digest_of(text);
}

Error from_system(const char* call, int code) {
  return make_error(ErrorCode::exhausted, std::string("manifest: ") + call + ": " +
                                              std::generic_category().message(code) +
                                              "; free memory or files");
}

bool read_all(int file, std::span<std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = pread(file, bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(std::size_t(count));
    offset += std::uint64_t(count);
  }
  return true;
}

Result<void> write_all(int file, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file, bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return from_system("pwrite", errno);
    bytes = bytes.subspan(std::size_t(count));
    offset += std::uint64_t(count);
  }
  return {};
}

}  // namespace

Result<Manifest> Manifest::create(const ManifestIdentity& identity) {
  FileDescriptor file(memfd_create("sangam-manifest", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return from_system("memfd_create", errno);
  if (ftruncate(file.number(), off_t(kPlaces * kPlaceBytes)) != 0) return from_system("ftruncate", errno);
  if (fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return from_system("fcntl", errno);
  return Manifest(std::move(file), digest_of_identity(identity));
}

Result<Manifest> Manifest::adopt(FileDescriptor file, const ManifestIdentity& identity) {
  struct stat found {};
  if (fstat(file.number(), &found) != 0 || std::uint64_t(found.st_size) != kPlaces * kPlaceBytes) {
    return make_error(ErrorCode::corrupt, "manifest: the file to adopt has " + std::to_string(found.st_size) +
                                              " bytes, not " + std::to_string(kPlaces * kPlaceBytes) +
                                              ": it is no manifest, or another version's; it is not used");
  }
  Manifest manifest(std::move(file), digest_of_identity(identity));
  if (const auto newest = manifest.newest()) manifest.sequence_ = newest->sequence;
  return manifest;
}

Result<void> Manifest::write(const ManifestRecord& record) {
  const std::vector<std::byte> body = encoded(record);
  if (body.size() > kRecordBytesMax) {
    return make_error(ErrorCode::exhausted, "manifest: a record of " + std::to_string(body.size()) +
                                                " bytes is beyond " + std::to_string(kRecordBytesMax) +
                                                "; serve fewer models");
  }
  ManifestHeader header;
  header.sequence = sequence_ + 1;
  header.bytes = body.size();
  header.identity = identity_;
  header.checksum = checksum_of(header, body);
  const std::uint64_t place = header.sequence % kPlaces * kPlaceBytes;
  if (auto written = write_all(file_.number(), body, place + sizeof header); !written) return written.error();
  auto written = write_all(file_.number(), std::as_bytes(std::span(&header, 1)), place);
  if (written) sequence_ = header.sequence;
  return written;
}

std::optional<Manifest::Found> Manifest::found_in(std::uint64_t place) const {
  ManifestHeader header;
  const std::span header_bytes = std::as_writable_bytes(std::span(&header, 1));
  if (!read_all(file_.number(), header_bytes, place * kPlaceBytes)) return std::nullopt;
  if (header.magic != kMagic || header.version != kVersion || header.identity != identity_ ||
      header.bytes > kRecordBytesMax || header.sequence % kPlaces != place) {
    return std::nullopt;
  }
  Found found{header.sequence, std::vector<std::byte>(header.bytes)};
  if (!read_all(file_.number(), found.body, place * kPlaceBytes + sizeof header)) return std::nullopt;
  if (checksum_of(header, found.body) != header.checksum) return std::nullopt;
  return found;
}

std::optional<Manifest::Found> Manifest::newest() const {
  std::optional<Found> newest;
  for (std::uint64_t place = 0; place < kPlaces; ++place) {
    auto found = found_in(place);
    if (found && (!newest || found->sequence > newest->sequence)) newest = std::move(found);
  }
  return newest;
}

Result<ManifestRecord> Manifest::read() const {
  const auto found = newest();
  if (found) return decoded(found->body);
  return make_error(
      ErrorCode::corrupt,
      "manifest: no whole record of this pool: none was written, the memory is damaged, or it is "
      "another pool's, configuration's or version's; nothing of it is used");
}

Result<FileDescriptor> Manifest::file() const {
  FileDescriptor copy(fcntl(file_.number(), F_DUPFD_CLOEXEC, 0));
  if (copy) return copy;
  return from_system("fcntl", errno);
}

}  // namespace sangam
