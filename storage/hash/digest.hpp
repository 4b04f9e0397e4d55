// The name of bytes: 128 bits of XXH3, the same on every machine.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "messages/vocabulary/result.hpp"

struct XXH3_state_s;  // xxHash's

namespace sangam {

/// XXH3-128, most significant byte first (the canonical form, as `xxhsum -H2` prints it). By chance alone two
/// of 2^40 segments share a digest with probability 2^-49. It is no defence against someone who constructs
/// collisions: whoever is about to *share* memory on equal digests compares the bytes first.
struct Digest {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Digest&) const = default;
};

[[nodiscard]] Digest digest_of(std::span<const std::byte> bytes);
[[nodiscard]] Digest digest_of(std::string_view text);
[[nodiscard]] Result<Digest> digest_of_file(const std::filesystem::path& path);

/// The digest of bytes that come piece by piece.
class DigestStream {
 public:
  DigestStream();
  void update(std::span<const std::byte> bytes);
  /// Of what has come so far.
  [[nodiscard]] Digest digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

/// 32 digits in lower case, and back.
[[nodiscard]] std::string hex_of(const Digest& digest);
[[nodiscard]] Result<Digest> digest_from_hex(std::string_view hex);

inline std::ostream& operator<<(std::ostream& out, const Digest& digest) {
  return out << hex_of(digest);
}

}  // namespace sangam

template <>
struct std::hash<sangam::Digest> {
  std::size_t operator()(const sangam::Digest& digest) const {
    std::size_t first = 0;  // a digest is uniform already
    std::memcpy(&first, digest.bytes.data(), sizeof first);
    return first;
  }
};
