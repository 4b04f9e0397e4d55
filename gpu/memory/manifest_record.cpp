// Writer and reader of a record; the reader trusts nothing.
#include "gpu/memory/manifest_record.hpp"

#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

namespace sangam {
namespace {

constexpr std::uint32_t kRankMax = 8;

class Writer {
 public:
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(std::byte(value >> (8 * i) & 0xFF));
  }
  void length(std::size_t count) { number(count, 4); }
  void text(const std::string& text) {
    length(text.size());
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  void digest(const Digest& digest) {
    for (const std::uint8_t byte : digest.bytes) bytes_.push_back(std::byte(byte));
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// After the first piece that is not there, all are zero and `good` is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return good_ && bytes_.empty(); }
  void refuse() { good_ = false; }

  std::uint64_t number(std::size_t size) {
    const std::span piece = next(size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < piece.size(); ++i) value |= std::uint64_t(piece[i]) << (8 * i);
    return value;
  }
  /// Below 2^63.
  std::int64_t count() {
    const std::uint64_t value = number(8);
    if (value > std::uint64_t(std::numeric_limits<std::int64_t>::max())) refuse();
    return good_ ? std::int64_t(value) : 0;
  }
  /// Of a list whose elements take `least` bytes or more each.
  std::size_t length(std::size_t least) {
    const std::uint64_t value = number(4);
    if (value > bytes_.size() / least) refuse();
    return good_ ? std::size_t(value) : 0;
  }
  std::string text() {
    const std::span piece = next(length(1));
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }
  Digest digest() {
    Digest digest;
    const std::span piece = next(digest.bytes.size());
    if (!piece.empty()) std::memcpy(digest.bytes.data(), piece.data(), piece.size());
    return digest;
  }

 private:
  std::span<const std::byte> next(std::size_t size) {
    if (!good_ || size > bytes_.size()) {
      refuse();
      return {};
    }
    const std::span piece = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return piece;
  }

  std::span<const std::byte> bytes_;
  bool good_ = true;
};

void write(Writer& out, const ManifestSegment& segment) {
  out.digest(segment.digest);
  out.number(std::uint64_t(segment.place.bytes.count()), 8);
  out.number(std::uint64_t(segment.place.offset.count()), 8);
  out.length(segment.place.pages.size());
  for (const PageExtent& extent : segment.place.pages) {
    out.number(std::uint64_t(extent.first), 4);
    out.number(std::uint64_t(extent.count.count()), 4);
  }
}

ManifestSegment read_segment(Reader& in) {
  ManifestSegment segment;
  segment.digest = in.digest();
  segment.place.bytes = Bytes(in.count());
  segment.place.offset = Bytes(in.count());
  segment.place.pages.resize(in.length(8));
  for (PageExtent& extent : segment.place.pages) {
    extent.first = PageId(in.number(4));
    extent.count = Pages(std::int64_t(in.number(4)));
  }
  return segment;
}

void write(Writer& out, const ManifestSlot& slot) {
  out.text(slot.name);
  out.number(std::uint64_t(slot.dtype), 1);
  out.length(slot.shape.size());
  for (const std::int64_t dimension : slot.shape) out.number(std::uint64_t(dimension), 8);
  out.number(slot.segment, 4);
}

/// -1: beyond 2^63.
std::int64_t bytes_of(const ManifestSlot& slot) {
  std::int64_t bytes = std::int64_t(bytes_of(slot.dtype));
  for (const std::int64_t dimension : slot.shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return -1;
  }
  return bytes;
}

ManifestSlot read_slot(Reader& in, const ManifestRecord& record) {
  ManifestSlot slot;
  slot.name = in.text();
  const std::uint64_t dtype = in.number(1);
  slot.dtype = DType(dtype);
  slot.shape.resize(in.length(8));
  if (slot.shape.size() > kRankMax || dtype > std::uint64_t(DType::i64)) in.refuse();
  for (std::int64_t& dimension : slot.shape) dimension = in.count();
  slot.segment = std::uint32_t(in.number(4));
  if (!in.good() || slot.segment >= record.segments.size() ||
      Bytes(bytes_of(slot)) != record.segments[slot.segment].place.bytes) {
    in.refuse();
  }
  return slot;
}

}  // namespace

ManifestRecord record_of(const std::map<ModelId, const SlotTable*>& tables) {
  ManifestRecord record;
  std::unordered_map<const Segment*, std::uint32_t> numbers;
  for (const auto& [model, table] : tables) {
    auto& slots = record.tables[model];
    for (const auto& [name, slot] : table->slots()) {
      const auto [number, is_new] =
          numbers.try_emplace(slot.segment.get(), std::uint32_t(record.segments.size()));
      if (is_new) record.segments.push_back({slot.segment->digest(), slot.segment->place()});
      slots.push_back({name, slot.view.dtype, slot.view.shape, number->second});
    }
  }
  return record;
}

std::vector<std::byte> encoded(const ManifestRecord& record) {
  Writer out;
  out.length(record.segments.size());
  for (const ManifestSegment& segment : record.segments) write(out, segment);
  out.length(record.tables.size());
  for (const auto& [model, slots] : record.tables) {
    out.text(model.text());
    out.length(slots.size());
    for (const ManifestSlot& slot : slots) write(out, slot);
    const auto note = record.notes.find(model);
    out.text(note == record.notes.end() ? std::string() : note->second);
  }
  return std::move(out).take();
}

Result<ManifestRecord> decoded(std::span<const std::byte> bytes) {
  constexpr std::size_t kSegmentLeast = 36;
  constexpr std::size_t kTableLeast = 12;
  constexpr std::size_t kSlotLeast = 13;
  Reader in(bytes);
  ManifestRecord record;
  for (std::size_t left = in.length(kSegmentLeast); left > 0 && in.good(); --left)
    record.segments.push_back(read_segment(in));
  for (std::size_t left = in.length(kTableLeast); left > 0 && in.good(); --left) {
    const auto [table, is_new] = record.tables.try_emplace(ModelId(in.text()));
    if (!is_new) in.refuse();
    for (std::size_t left_slots = in.length(kSlotLeast); left_slots > 0 && in.good(); --left_slots) {
      ManifestSlot slot = read_slot(in, record);
      if (!table->second.empty() && slot.name <= table->second.back().name) in.refuse();
      table->second.push_back(std::move(slot));
    }
    if (std::string note = in.text(); !note.empty()) record.notes[table->first] = std::move(note);
  }
  if (in.at_end()) return record;
  return make_error(ErrorCode::corrupt, "manifest: a record of " + std::to_string(bytes.size()) +
                                            " bytes is no list of segments and tables; it is not used");
}

}  // namespace sangam
