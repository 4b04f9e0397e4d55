// xxHash behind Digest, and its text form.
#include "storage/hash/digest.hpp"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same functions, in the widest vectors that this machine has
#else
#include <xxhash.h>
#endif

#include <new>

#include "storage/file/mapped_file.hpp"

namespace sangam {
namespace {

int nibble_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  std::memcpy(digest.bytes.data(), canonical.digest, digest.bytes.size());
  return digest;
}

}  // namespace

Digest digest_of(std::span<const std::byte> bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

void DigestStream::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

DigestStream::DigestStream() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void DigestStream::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

Digest DigestStream::digest() const {
  return canonical(XXH3_128bits_digest(state_.get()));
}

Digest digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text)));
}

Result<Digest> digest_of_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  return digest_of(file->bytes());
}

std::string hex_of(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest.bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

Result<Digest> digest_from_hex(std::string_view hex) {
  Digest digest;
  const auto refused = [&] {
    return make_error(ErrorCode::corrupt, "'" + std::string(hex.substr(0, 40)) +
                                              "' is not a digest: 32 hexadecimal digits in lower case");
  };
  if (hex.size() != 2 * digest.bytes.size()) return refused();
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = nibble_of(hex[2 * i]);
    const int low = nibble_of(hex[2 * i + 1]);
    if (high < 0 || low < 0) return refused();
    digest.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace sangam
