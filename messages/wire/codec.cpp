// Encoding, decoding and the limits around both.
#include "messages/wire/codec.hpp"

#include <cstring>

#include "bulk.capnp.h"
#include "mesh.capnp.h"
#include "messages/wire/bulk_frame.hpp"
#include "messages/wire/check.hpp"
#include "messages/wire/reflect.hpp"

namespace sangam::wire {
namespace {

constexpr std::size_t kWord = sizeof(capnp::word);
constexpr unsigned kSegmentsMax = 64;
constexpr unsigned kNestingMax = 16;

/// The two protocols differ in these only.
template <class AnyFrame>
struct Protocol;
template <>
struct Protocol<Frame> {
  using Schema = schema::Frame;
  static constexpr std::uint32_t kItsMagic = kMagic;
  static constexpr std::uint16_t kItsVersion = kVersion;
};
template <>
struct Protocol<BulkFrame> {
  using Schema = schema::BulkFrame;
  static constexpr std::uint32_t kItsMagic = kBulkMagic;
  static constexpr std::uint16_t kItsVersion = kBulkVersion;
};

template <class AnyFrame>
capnp::StructSchema frame_schema() {
  return capnp::Schema::from<typename Protocol<AnyFrame>::Schema>();
}

/// Bounds that hold for one message and not for all of a type.
std::string wrong_with_frame(const Frame& frame) {
  if (std::string wrong = wrong_with(frame.body); !wrong.empty()) return wrong;
  const auto* letter = std::get_if<EnvelopePtr>(&frame.body);
  if (letter != nullptr && (*letter)->id == 0) return "envelope.id is 0; ids count from 1";
  return {};
}

std::string wrong_with_frame(const BulkFrame& frame) {
  return wrong_with(frame.body);
}

FrameBytes flatten(capnp::MessageBuilder& message) {
  FrameBytes frame(capnp::computeSerializedSizeInWords(message));
  kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(frame.data()), frame.size() * kWord));
  capnp::writeMessage(out, message);
  return frame;
}

Refusal oversized(std::size_t bytes, Bytes frame_max) {
  return {Fault::oversized,
          "frame bytes=" + std::to_string(bytes) + " limit=" + std::to_string(frame_max.count())};
}

/// The library reads a count of 2^32 - 1 segments as none and would take such a frame for an empty one.
void check_header(std::span<const std::byte> bytes, Bytes frame_max) {
  if (std::int64_t(bytes.size()) > frame_max.count()) throw Nonsense{oversized(bytes.size(), frame_max)};
  if (bytes.size() < 2 * kWord || bytes.size() % kWord != 0) {
    throw Nonsense{
        {Fault::truncated, "frame bytes=" + std::to_string(bytes.size()) + " are not whole words"}};
  }
  std::uint32_t last_segment = 0;
  std::memcpy(&last_segment, bytes.data(), sizeof last_segment);
  if (last_segment >= kSegmentsMax) {
    throw Nonsense{{Fault::malformed, "frame segments=" + std::to_string(std::uint64_t(last_segment) + 1) +
                                          " limit=" + std::to_string(kSegmentsMax)}};
  }
  // A count and a length each, four bytes apiece, rounded up to a word.
  std::uint64_t needed = ((std::uint64_t(last_segment) + 1) / 2 + 1) * kWord;
  for (std::uint32_t i = 0; i <= last_segment && needed <= bytes.size(); ++i) {
    std::uint32_t words = 0;
    std::memcpy(&words, bytes.data() + 4 + 4 * i, sizeof words);
    needed += std::uint64_t(words) * kWord;
  }
  if (needed != bytes.size()) {
    throw Nonsense{{needed > bytes.size() ? Fault::truncated : Fault::malformed,
                    "frame bytes=" + std::to_string(bytes.size()) + ", its header says " +
                        std::to_string(needed) + " or more"}};
  }
}

template <class AnyFrame>
AnyFrame read_frame(kj::ArrayPtr<const capnp::word> words) {
  using Its = Protocol<AnyFrame>;
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = 2 * words.size() + 64;
  limits.nestingLimit = kNestingMax;
  capnp::FlatArrayMessageReader message(words, limits);
  auto root = message.getRoot<capnp::DynamicStruct>(frame_schema<AnyFrame>());
  AnyFrame frame;
  const std::vector<Field>& fields = fields_of<AnyFrame>(frame_schema<AnyFrame>());
  take(root, fields[0], frame.magic);
  take(root, fields[1], frame.version);
  if (frame.magic != Its::kItsMagic || frame.version != Its::kItsVersion) {
    throw Nonsense{{Fault::unknown_version, "frame magic=" + std::to_string(frame.magic) +
                                                " version=" + std::to_string(frame.version) +
                                                "; ours is version " + std::to_string(Its::kItsVersion)}};
  }
  take(root, fields[2], frame.body);
  if (std::string wrong = wrong_with_frame(frame); !wrong.empty()) {
    throw Nonsense{{Fault::invalid_value, std::move(wrong)}};
  }
  return frame;
}

template <class AnyFrame>
AnyFrame read_bytes(std::span<const std::byte> bytes) {
  const std::size_t words = bytes.size() / kWord;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kWord == 0) {
    return read_frame<AnyFrame>(kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()), words));
  }
  FrameBytes aligned(words);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  return read_frame<AnyFrame>(kj::arrayPtr(reinterpret_cast<const capnp::word*>(aligned.data()), words));
}

template <class AnyFrame>
Decoded<FrameBytes> encode_any(const AnyFrame& frame, Bytes frame_max) {
  if (std::string wrong = wrong_with_frame(frame); !wrong.empty()) {
    return Refusal{Fault::invalid_value, std::move(wrong)};
  }
  try {
    capnp::word scratch[256] = {};  // Most frames fit and need no allocation.
    capnp::MallocMessageBuilder message(kj::arrayPtr(scratch, 256));
    put_members(message.initRoot<capnp::DynamicStruct>(frame_schema<AnyFrame>()), frame);
    FrameBytes bytes = flatten(message);
    if (std::int64_t(bytes.size() * kWord) > frame_max.count()) {
      return oversized(bytes.size() * kWord, frame_max);
    }
    return bytes;
  } catch (const kj::Exception& e) {
    return Refusal{Fault::malformed, e.getDescription().cStr()};
  }
}

template <class AnyFrame>
Decoded<AnyFrame> decode_any(std::span<const std::byte> bytes, Bytes frame_max) {
  try {
    check_header(bytes, frame_max);
    return read_bytes<AnyFrame>(bytes);
  } catch (const Nonsense& nonsense) {
    return nonsense.refusal;
  } catch (const kj::Exception& e) {
    return Refusal{Fault::malformed, e.getDescription().cStr()};
  }
}

}  // namespace

std::string_view name_of(Fault fault) {
  constexpr std::array<std::string_view, kFaults> names = {
      "truncated", "oversized", "malformed", "unknown_version", "unknown_message", "invalid_value"};
  return names[std::size_t(fault)];
}

Decoded<FrameBytes> encode(const Frame& frame, Bytes frame_max) {
  return encode_any(frame, frame_max);
}

Decoded<FrameBytes> encode(const BulkFrame& frame) {
  return encode_any(frame, kBulkFrameMax);
}

Decoded<Frame> decode(std::span<const std::byte> bytes, Bytes frame_max) {
  return decode_any<Frame>(bytes, frame_max);
}

Decoded<BulkFrame> decode_bulk(std::span<const std::byte> bytes) {
  return decode_any<BulkFrame>(bytes, kBulkFrameMax);
}

}  // namespace sangam::wire
