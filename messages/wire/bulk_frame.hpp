// What two ends of a bulk session say to each other; the schema holds the contract of each frame.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <variant>

#include "messages/vocabulary/blob.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/wire/codec.hpp"

namespace sangam::wire {

struct BulkOpen {
  NodeName node;
  Incarnation incarnation{};
};
BOOST_DESCRIBE_STRUCT(BulkOpen, (), (node, incarnation))

struct BulkAsk {
  std::uint64_t number = 0;
  ActorName owner;
  BlobName name;
};
BOOST_DESCRIBE_STRUCT(BulkAsk, (), (number, owner, name))

struct BulkCredit {
  std::uint64_t parts = 0;
};
BOOST_DESCRIBE_STRUCT(BulkCredit, (), (parts))

struct BulkAlive {
  Incarnation incarnation{};
};
BOOST_DESCRIBE_STRUCT(BulkAlive, (), (incarnation))

struct BulkPart {
  std::uint64_t number = 0;
  Bytes size{0};
  Bytes offset{0};
  Bytes bytes{0};
  BlobHash hash{};
};
BOOST_DESCRIBE_STRUCT(BulkPart, (), (number, size, offset, bytes, hash))

struct BulkRefused {
  std::uint64_t number = 0;
  ErrorCode code = ErrorCode::none;
  std::string why;
};
BOOST_DESCRIBE_STRUCT(BulkRefused, (), (number, code, why))

struct BulkClose {
  std::string why;
};
BOOST_DESCRIBE_STRUCT(BulkClose, (), (why))

using BulkBody = std::variant<BulkOpen, BulkAsk, BulkCredit, BulkAlive, BulkPart, BulkRefused, BulkClose>;

constexpr std::uint32_t kBulkMagic = 0x53424c4b;  // "SBLK"
constexpr std::uint16_t kBulkVersion = 1;
/// Of a frame without the bytes beside it; the longest is a BulkClose with its reason.
constexpr Bytes kBulkFrameMax{128 * 1024};

struct BulkFrame {
  std::uint32_t magic = kBulkMagic;
  std::uint16_t version = kBulkVersion;
  BulkBody body;
};
BOOST_DESCRIBE_STRUCT(BulkFrame, (), (magic, version, body))

[[nodiscard]] Decoded<FrameBytes> encode(const BulkFrame& frame);
/// As decode of a frame of the mesh.
[[nodiscard]] Decoded<BulkFrame> decode_bulk(std::span<const std::byte> bytes);

}  // namespace sangam::wire
