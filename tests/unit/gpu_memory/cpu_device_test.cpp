// The memory of a CPU device: what it maps, shares, adopts and refuses.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "gpu/device/cpu/stream_copy.hpp"
#include "tests/unit/gpu_memory/test_devices.hpp"

using namespace sangam;
using sangam::testing::dies;

namespace {

constexpr std::int64_t kPage = 4096;

std::unique_ptr<CpuDevice> device_of(std::int64_t pages) {
  return CpuDevice::create({Bytes{pages * kPage}, Bytes{kPage}}).value();
}

/// Page p is filled with p + 1.
void number_pages(Device& device) {
  for (std::int64_t page = 0; page < device.pages().count(); ++page)
    std::memset(device.arena().at(PageId(page)), int(page) + 1, kPage);
}

std::vector<int> first_of_each_page(std::span<const std::byte> bytes) {
  std::vector<int> firsts;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) firsts.push_back(int(bytes[at]));
  return firsts;
}

const std::vector<PageExtent> kScattered{{PageId{6}, Pages{2}}, {PageId{0}, Pages{1}}, {PageId{3}, Pages{1}}};

}  // namespace

TEST_CASE("a device's pages are distinct, writable and zero at first") {
  const auto device = device_of(4);
  CHECK(device->pages() == Pages{4});
  CHECK_FALSE(device->adopted());
  for (std::uint32_t page = 0; page < 4; ++page) {
    CHECK(*device->arena().at(PageId{page}) == std::byte{0});
    std::memset(device->arena().at(PageId{page}), int(page) + 1, kPage);
  }
  CHECK(device->arena().base[kPage - 1] == std::byte{1});
  CHECK(device->arena().base[3 * kPage] == std::byte{4});
}

TEST_CASE("a device that cannot be is refused with the numbers and a remedy") {
  const auto odd_page = CpuDevice::create({Bytes{1 << 20}, Bytes{1000}});
  REQUIRE_FALSE(odd_page);
  CHECK(odd_page.error().code == ErrorCode::invalid_input);
  CHECK(odd_page.error().context.find("1000") != std::string::npos);

  const auto too_small = CpuDevice::create({Bytes{4095}, Bytes{4096}});
  REQUIRE_FALSE(too_small);
  CHECK(too_small.error().code == ErrorCode::invalid_input);

  const auto too_large = CpuDevice::create({Bytes{std::int64_t{1} << 50}, Bytes{1 << 21}});
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == ErrorCode::exhausted);
  CHECK(too_large.error().context.find("1125899906842624") != std::string::npos);
}

TEST_CASE("a span shows its pages in the order in which they were named, and writes reach them") {
  const auto device = device_of(8);
  number_pages(*device);
  const auto span = device->map(kScattered, Access::read_write).value();
  CHECK(first_of_each_page(span->bytes()) == std::vector{7, 8, 1, 4});
  span->bytes()[2 * kPage] = std::byte{99};
  CHECK(*device->arena().at(PageId{0}) == std::byte{99});
}

TEST_CASE("who maps pages for reading cannot write to them") {
  const auto device = device_of(8);
  const auto span = device->map(kScattered, Access::read).value();
  CHECK(dies([&] { *static_cast<volatile std::byte*>(span->bytes().data()) = std::byte{1}; }));
  const auto shared = device->share(kScattered).value();
  const auto imported = device->import(shared, Access::read).value();
  CHECK(dies([&] { *static_cast<volatile std::byte*>(imported->bytes().data()) = std::byte{1}; }));
}

TEST_CASE("pages outlive their span, and shared pages outlive the device that shared them") {
  auto device = device_of(8);
  number_pages(*device);
  device->map(kScattered, Access::read_write).value()->bytes()[0] = std::byte{77};
  CHECK(*device->arena().at(PageId{6}) == std::byte{77});

  auto shared = device->share(kScattered).value();
  device.reset();
  const auto elsewhere = device_of(1);
  const auto imported = elsewhere->import(shared, Access::read_write).value();
  shared.clear();
  CHECK(first_of_each_page(imported->bytes()) == std::vector{77, 8, 1, 4});
}

TEST_CASE("shared pages that do not lie in sealed memory of their size are refused") {
  const auto device = device_of(4);
  const auto import_of = [&](SharedPages pages) {
    const std::vector<SharedPages> shared = [&] {
      std::vector<SharedPages> one;
      one.push_back(std::move(pages));
      return one;
    }();
    return device->import(shared, Access::read);
  };
  const auto file = [&] { return device->file().value(); };
  CHECK(import_of({file(), 3 * kPage, kPage}));
  CHECK_FALSE(import_of({file(), 3 * kPage, 2 * kPage}));
  CHECK_FALSE(import_of({file(), 5 * kPage, kPage}));
  CHECK_FALSE(import_of({file(), 100, kPage}));
  CHECK_FALSE(import_of({file(), 0, 100}));
  CHECK_FALSE(import_of({file(), 0, 0}));
  CHECK_FALSE(import_of({FileDescriptor(), 0, kPage}));
  FileDescriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(unsealed.number(), 4 * kPage) == 0);
  CHECK(import_of({std::move(unsealed), 0, kPage}).error().code == ErrorCode::corrupt);
  CHECK_FALSE(device->import({}, Access::read));
}

TEST_CASE("a device is adopted with what lies in it, under its own size and page only") {
  auto device = device_of(8);
  number_pages(*device);
  auto file = device->file().value();
  CHECK(ftruncate(file.number(), 4 * kPage) != 0);  // sealed: nobody can take pages away under a reader
  auto second = device->file().value();
  auto third = device->file().value();
  device.reset();

  CHECK(CpuDevice::adopt(std::move(second), {Bytes{9 * kPage}, Bytes{kPage}}).error().code ==
        ErrorCode::corrupt);
  CHECK(CpuDevice::adopt(std::move(third), {Bytes{8 * kPage}, Bytes{3 * kPage}}).error().code ==
        ErrorCode::corrupt);
  const auto adopted = CpuDevice::adopt(std::move(file), {Bytes{8 * kPage}, Bytes{kPage}}).value();
  CHECK(adopted->adopted());
  CHECK(first_of_each_page({adopted->arena().base, 8 * kPage}) == std::vector{1, 2, 3, 4, 5, 6, 7, 8});

  FileDescriptor strange(open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(CpuDevice::adopt(std::move(strange), {Bytes{8 * kPage}, Bytes{kPage}}).error().code ==
        ErrorCode::corrupt);
}

TEST_CASE("a copy past the caches brings every byte and no other, wherever it begins and ends") {
  std::vector<std::byte> source(1000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 7 + 1);
  for (const std::size_t to : {0, 1, 63, 64}) {
    for (const std::size_t from : {0, 5}) {
      for (const std::size_t bytes : {0, 1, 62, 63, 64, 65, 127, 128, 129, 500}) {
        CAPTURE(to);
        CAPTURE(from);
        CAPTURE(bytes);
        alignas(64) std::byte target[700] = {};
        stream_copy(target + to, source.data() + from, bytes);
        CHECK(std::memcmp(target + to, source.data() + from, bytes) == 0);
        CHECK(std::count(target, target + 700, std::byte{0}) >= std::ptrdiff_t(700 - bytes));
        CHECK(target[to + bytes] == std::byte{0});
      }
    }
  }
}

namespace {

struct Recorder final : CopyWitness {
  void see(std::span<const std::byte> bytes) override { seen.insert(seen.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> seen;
};

}  // namespace

TEST_CASE("a witness sees what is stored, in its order, wherever the copy begins and ends") {
  std::vector<std::byte> source(20'000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 7 + i / 251);
  for (const std::size_t to : {0, 1, 63, 64}) {
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 4160, 12'345}) {
      CAPTURE(to);
      CAPTURE(bytes);
      std::vector<std::byte> target(source.size());
      Recorder witness;
      stream_copy(target.data() + to, source.data() + 5, bytes, witness);
      CHECK(std::equal(witness.seen.begin(), witness.seen.end(), source.begin() + 5, source.begin() + 5 + std::ptrdiff_t(bytes)));
      CHECK(std::memcmp(target.data() + to, source.data() + 5, bytes) == 0);
      CHECK(std::count(target.begin(), target.begin() + std::ptrdiff_t(to), std::byte{0}) == std::ptrdiff_t(to));
      CHECK(target[to + bytes] == std::byte{0});
    }
  }
}

TEST_CASE("each of many witnesses sees its own pieces, whoever else copies at the time") {
  const auto device = device_of(2048);
  constexpr std::size_t kBytes = 40 << 20;
  std::vector<std::byte> source(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) source[i] = std::byte(i * 31 + (i >> 12));
  auto buffer = device->host_buffer(Bytes{kBytes}).value();
  std::vector<Recorder> witnesses(9);
  std::vector<CopyPiece> pieces;
  std::vector<std::size_t> borders{0};
  for (Recorder& witness : witnesses) {
    const std::size_t first = borders.back();
    const std::size_t end = &witness == &witnesses.back() ? kBytes : first + 100'003 * borders.size();
    // The middle one has no witness.
    CopyWitness* sees = borders.size() == 5 ? nullptr : &witness;
    const std::size_t middle = first + (end - first) / 3;
    pieces.push_back({buffer->bytes().data() + first, source.data() + first, middle - first, sees});
    pieces.push_back({buffer->bytes().data() + middle, source.data() + middle, end - middle, sees});
    borders.push_back(end);
  }
  REQUIRE(device->copy(pieces));
  CHECK(std::memcmp(buffer->bytes().data(), source.data(), kBytes) == 0);
  for (std::size_t i = 0; i < witnesses.size(); ++i) {
    CAPTURE(i);
    const std::span own = std::span(source).subspan(borders[i], borders[i + 1] - borders[i]);
    CHECK(std::ranges::equal(witnesses[i].seen, i == 4 ? own.first(0) : own));
  }
}

TEST_CASE("a copy that several threads share brings every byte") {
  const auto device = device_of(2048);
  constexpr std::size_t kWords = 40 << 20 >> 3;
  std::vector<std::uint64_t> source(kWords);
  std::iota(source.begin(), source.end(), 1);
  auto buffer = device->host_buffer(Bytes{kWords * 8}).value();
  // Pieces of odd sizes, so that the threads' borders fall within them.
  std::vector<CopyPiece> pieces;
  const auto* from = reinterpret_cast<const std::byte*>(source.data());
  for (std::size_t at = 0; at < kWords * 8;) {
    const std::size_t bytes = std::min<std::size_t>(kWords * 8 - at, 1 + at / 3);
    pieces.push_back({buffer->bytes().data() + at, from + at, bytes});
    at += bytes;
  }
  REQUIRE(device->copy(pieces));
  CHECK(std::memcmp(buffer->bytes().data(), source.data(), kWords * 8) == 0);
  CHECK_FALSE(device->host_buffer(Bytes{0}));
}
