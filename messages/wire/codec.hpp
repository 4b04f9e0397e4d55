// Frames to bytes and back. What comes in from a wire is refused with a reason unless every byte of it makes
// sense; what goes out is held to the same rules, so that a node is never refused by another one for its own
// mistakes without having been told first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "messages/wire/frame.hpp"

namespace sangam::wire {

/// Why a frame was refused; the counters of a node have one entry each.
enum class Fault : std::uint8_t {
  truncated,        ///< Not whole words, or shorter than its own header says.
  oversized,        ///< Larger than a frame may be.
  malformed,        ///< Not a Cap'n Proto message, or one that points outside of itself.
  unknown_version,  ///< No magic, or of a protocol that we do not speak.
  unknown_message,  ///< A union member that came after us: a newer node says something that we cannot hear.
  invalid_value,    ///< A name, text, list, count, duration or enumerant outside its bounds.
};
constexpr std::size_t kFaults = 6;
[[nodiscard]] std::string_view name_of(Fault fault);

struct Refusal {
  Fault fault = Fault::malformed;
  std::string why;
};

[[noreturn]] inline void throw_exception_from_error(const Refusal& refusal, const boost::source_location&) {
  throw std::runtime_error(refusal.why);
}

template <class T>
using Decoded = boost::system::result<T, Refusal>;

constexpr std::size_t kNameBytesMax = 255;
constexpr std::size_t kTextBytesMax = 64 * 1024;
constexpr Bytes kFrameMax{16 * 1024 * 1024};  ///< A prompt of a million tokens takes 4 MiB.
constexpr std::chrono::hours kDurationMax{24 * 366};

/// Whole words of 8 bytes, as Cap'n Proto wants them.
using FrameBytes = std::vector<std::uint64_t>;

[[nodiscard]] Decoded<FrameBytes> encode(const Frame& frame, Bytes frame_max = kFrameMax);
/// `bytes` need no alignment; aligned ones are read in place.
[[nodiscard]] Decoded<Frame> decode(std::span<const std::byte> bytes, Bytes frame_max = kFrameMax);

[[nodiscard]] inline std::span<const std::byte> bytes_of(const FrameBytes& frame) {
  return std::as_bytes(std::span(frame));
}

/// Walks every struct against the schema, both ways: members, types, enumerants, union members. Empty: they
/// agree. A node refuses to start otherwise.
[[nodiscard]] std::vector<std::string> schema_mismatches();

}  // namespace sangam::wire
