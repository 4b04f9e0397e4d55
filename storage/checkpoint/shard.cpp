// The checks that stand between a damaged file and a model that speaks nonsense.
#include "storage/checkpoint/shard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "storage/checkpoint/header_reader.hpp"
#include "storage/file/mapped_file.hpp"

namespace sangam {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::array kDTypes = {DType::bf16, DType::f16, DType::f32, DType::i8,
                                DType::u8,   DType::i32, DType::i64};

Error damaged(const std::string& place, const std::string& what) {
  return make_error(ErrorCode::corrupt, place + ": " + what + "; download or export the file again");
}

/// The header's text, or why there is none.
Result<std::string_view> header_of(std::string_view file, const std::string& place) {
  if (file.empty()) return damaged(place, "is empty");
  if (is_lfs_pointer(file))
    return make_error(ErrorCode::corrupt,
                      place + ": is a Git LFS pointer, not the weights; run `git lfs pull`");
  if (file.size() < kLengthBytes)
    return damaged(place, fmt::format("has {} bytes, but the header's length alone takes 8", file.size()));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(file[i])} << (8 * i);
  if (length > kHeaderBytesMax)
    return damaged(place,
                   fmt::format("states a header of {} bytes (limit {}); perhaps it is no safetensors file",
                               length, kHeaderBytesMax));
  if (length > file.size() - kLengthBytes)
    return damaged(place, fmt::format("is cut off inside its header: {} bytes stated, {} there", length,
                                      file.size() - kLengthBytes));
  const std::string_view header = file.substr(kLengthBytes, length);
  if (header.empty() || header.front() != '{')
    return damaged(place, "has a header that does not begin with '{'");
  return header;
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto* found =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](DType type) { return name_of(type) == name; });
  return found == kDTypes.end() ? std::nullopt : std::optional(*found);
}

/// Bytes that the shape asks for; nothing if they are beyond 63 bits.
std::optional<std::int64_t> bytes_wanted(const HeaderEntry& entry, DType dtype) {
  auto bytes = static_cast<std::int64_t>(bytes_of(dtype));
  for (const std::int64_t dimension : entry.shape)
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  return bytes;
}

/// Judges one entry on its own.
Result<DType> checked_dtype(const HeaderEntry& entry, std::int64_t data_bytes, const std::string& place) {
  const auto dtype = dtype_named(entry.dtype);
  if (!dtype)
    return make_error(
        ErrorCode::invalid_input,
        fmt::format("{}: tensor '{}' has dtype '{}'; readable are BF16, F16, F32, I8, U8, I32, I64; "
                    "convert the checkpoint to bf16",
                    place, entry.name, entry.dtype.substr(0, 32)));
  const auto span = fmt::format("tensor '{}' at [{}, {})", entry.name, entry.begin, entry.end);
  if (entry.begin > entry.end) return damaged(place, span + " ends before it begins");
  if (entry.end > data_bytes)
    return damaged(
        place, fmt::format("{} reaches beyond the {} data bytes of the file (cut off?)", span, data_bytes));
  const auto wanted = bytes_wanted(entry, *dtype);
  if (!wanted || *wanted != entry.end - entry.begin)
    return damaged(place, fmt::format("{} has {} bytes, but {} of shape [{}] takes {}", span,
                                      entry.end - entry.begin, entry.dtype, fmt::join(entry.shape, ", "),
                                      wanted ? std::to_string(*wanted) : "more than 2^63"));
  return *dtype;
}

/// Entries sorted by their bytes must follow one another without hole or overlap, up to the end.
std::optional<Error> tiling_fault(const std::vector<HeaderEntry>& entries, std::int64_t data_bytes,
                                  const std::string& place) {
  std::int64_t filled = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin < filled)
      return damaged(place,
                     fmt::format("tensor '{}' begins at byte {}, inside the one before it, which ends at {}",
                                 entry.name, entry.begin, filled));
    if (entry.begin > filled)
      return damaged(place,
                     fmt::format("a hole of {} bytes before tensor '{}'", entry.begin - filled, entry.name));
    filled = entry.end;
  }
  if (filled == data_bytes) return std::nullopt;
  return damaged(place, fmt::format("{} trailing bytes after the last tensor, which ends at {} of {}",
                                    data_bytes - filled, filled, data_bytes));
}

std::optional<Error> name_fault(const std::vector<HeaderEntry>& entries, const std::string& place) {
  std::vector<std::string_view> names;
  for (const HeaderEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return std::nullopt;
  return damaged(place, fmt::format("tensor '{}' is there twice", *twice));
}

}  // namespace

Result<std::vector<ShardTensor>> parse_shard(std::span<const std::byte> file, const std::string& place) {
  const auto header = header_of({reinterpret_cast<const char*>(file.data()), file.size()}, place);
  if (!header) return header.error();
  auto entries = read_header(*header, place);
  if (!entries) return entries.error();
  if (auto fault = name_fault(*entries, place)) return *fault;
  const auto data = file.subspan(kLengthBytes + header->size());
  const auto data_bytes = static_cast<std::int64_t>(data.size());
  std::sort(entries->begin(), entries->end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::vector<ShardTensor> tensors;
  for (const HeaderEntry& entry : *entries) {
    const auto dtype = checked_dtype(entry, data_bytes, place);
    if (!dtype) return dtype.error();
    const auto bytes = data.subspan(static_cast<std::size_t>(entry.begin),
                                    static_cast<std::size_t>(entry.end - entry.begin));
    tensors.push_back({entry.name, {*dtype, entry.shape, bytes}});
  }
  if (auto fault = tiling_fault(*entries, data_bytes, place)) return *fault;
  return tensors;
}

}  // namespace sangam
