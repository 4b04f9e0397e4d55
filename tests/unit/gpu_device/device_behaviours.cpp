// What every Device must show. Peers are processes that get pages by descriptor and judge them by their
// bytes.
#include "tests/unit/gpu_device/device_behaviours.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>

namespace sangam {

std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes) {
  std::vector<std::byte> filled(bytes);
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(filled.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return filled;
}

namespace {

Result<void> try_write(Device& device, std::span<std::byte> place, std::span<const std::byte> bytes) {
  auto buffer = device.host_buffer(Bytes(std::int64_t(bytes.size())));
  if (!buffer) return buffer.error();
  std::ranges::copy(bytes, (*buffer)->bytes().begin());
  const CopyPiece piece{place.data(), (*buffer)->bytes().data(), bytes.size()};
  return device.copy({&piece, 1});
}

Result<std::vector<std::byte>> try_read(Device& device, std::span<const std::byte> place) {
  auto buffer = device.host_buffer(Bytes(std::int64_t(place.size())));
  if (!buffer) return buffer.error();
  const CopyPiece piece{(*buffer)->bytes().data(), place.data(), place.size()};
  if (auto copied = device.copy({&piece, 1}); !copied) return copied.error();
  const auto bytes = (*buffer)->bytes();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace

void write_to(Device& device, std::span<std::byte> place, std::span<const std::byte> bytes) {
  REQUIRE(try_write(device, place, bytes));
}

std::vector<std::byte> read_from(Device& device, std::span<const std::byte> place) {
  auto bytes = try_read(device, place);
  REQUIRE(bytes);
  return std::move(*bytes);
}

std::span<std::byte> page_of(const Device& device, std::uint32_t page) {
  return {device.arena().at(PageId{page}), device.arena().page_bytes};
}

void number_pages(Device& device) {
  for (std::uint32_t page = 0; page < device.pages().count(); ++page)
    write_to(device, page_of(device, page), pattern(page, device.arena().page_bytes));
}

namespace {

constexpr int kWrongBytes = 10;
constexpr int kRefused = 11;
constexpr int kNoDevice = 12;
constexpr std::uint32_t kPagesMax = 1000;

std::unique_ptr<Device> made(std::int64_t pages) {
  auto device = device_under_test().make(Pages{pages});
  REQUIRE(device);
  return std::move(*device);
}

/// Pages 4, 1, 2, 0: scattered, neighbours among them, not in order.
constexpr std::array<PageExtent, 3> kScattered{
    {{PageId{4}, Pages{1}}, {PageId{1}, Pages{2}}, {PageId{0}, Pages{1}}}};
constexpr std::array<std::uint32_t, 4> kInOrder{4, 1, 2, 0};

bool holds(std::span<const std::byte> bytes, std::size_t index, std::size_t page_bytes, std::uint64_t seed) {
  return std::ranges::equal(bytes.subspan(index * page_bytes, page_bytes), pattern(seed, page_bytes));
}

/// Whether the imported span holds pages 4, 1, 2, 0 of numbered pages.
bool holds_scattered(Device& device, const PageSpan& span) {
  const auto bytes = try_read(device, span.bytes());
  const std::size_t page_bytes = span.bytes().size() / kInOrder.size();
  if (!bytes) return false;
  for (std::size_t i = 0; i < kInOrder.size(); ++i) {
    if (!holds(*bytes, i, page_bytes, kInOrder[i])) return false;
  }
  return true;
}

int write_all(Device& device, const PageSpan& span) {
  if (!device.host_access())
    return try_write(device, span.bytes(), pattern(100, span.bytes().size())) ? 0 : kRefused;
  signal(SIGSEGV, SIG_DFL);  // Sanitizers have a handler of their own.
  std::ranges::copy(pattern(100, span.bytes().size()), span.bytes().begin());
  return 0;
}

/// Tells the starter that the import stands, and waits until the starter has done its part.
int read_later(int socket, Device& device, const PageSpan& span) {
  if (!send_part(socket, {.verb = HandOverVerb::done}, Waiting::allowed)) return kRefused;
  if (!receive_part(socket, Waiting::allowed)) return kRefused;
  return holds_scattered(device, span) ? 0 : kWrongBytes;
}

}  // namespace

int run_peer(const std::string& role, int socket) {
  auto shared = receive_pages(socket, HandOverVerb::pages, kPagesMax);
  auto device = device_under_test().make(Pages{1});
  if (!shared || !device) return kNoDevice;
  auto span = (*device)->import(*shared, role == "write" ? Access::read_write : Access::read);
  shared->clear();
  if (!span) return kRefused;
  if (role == "read") return holds_scattered(**device, **span) ? 0 : kWrongBytes;
  if (role == "read_later") return read_later(socket, **device, **span);
  return write_all(**device, **span);
}

Peer::Peer(const std::string& role) {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  socket_ = FileDescriptor(ends[0]);
  FileDescriptor theirs(ends[1]);
  process_ = fork();
  REQUIRE(process_ >= 0);
  if (process_ > 0) return;
  if (!device_under_test().peers_start_afresh) _exit(run_peer(role, theirs.number()));
  // Through a high number, since dup2 onto itself would keep close-on-exec.
  const int aside = fcntl(theirs.number(), F_DUPFD, 100);
  if (aside < 0 || dup2(aside, 3) != 3) _exit(kRefused);
  execl("/proc/self/exe", "peer", "--peer", role.c_str(), nullptr);
  _exit(kRefused);
}

Peer::~Peer() {
  if (process_ > 0) kill();
}

int Peer::end() {
  int status = 0;
  REQUIRE(waitpid(process_, &status, 0) == process_);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void Peer::kill() {
  ::kill(process_, SIGKILL);
  (void)end();
}

TEST_CASE("a device shows all its pages once, in the order of their numbers") {
  const auto device = made(5);
  CHECK(device->pages() == Pages{5});
  number_pages(*device);
  for (std::uint32_t page = 0; page < 5; ++page) {
    CAPTURE(page);
    CHECK(read_from(*device, page_of(*device, page)) == pattern(page, device->arena().page_bytes));
  }
}

TEST_CASE("a span over scattered pages has their bytes in the order that was asked for") {
  const auto device = made(5);
  number_pages(*device);
  auto span = device->map(kScattered, Access::read);
  REQUIRE(span);
  REQUIRE((*span)->bytes().size() == 4 * device->arena().page_bytes);
  CHECK(holds_scattered(*device, **span));
}

TEST_CASE(
    "what is written through a span is in its pages, before and after the span ends, and nowhere else") {
  const auto device = made(5);
  number_pages(*device);
  const std::size_t page_bytes = device->arena().page_bytes;
  {
    auto span = device->map(kScattered, Access::read_write);
    REQUIRE(span);
    write_to(*device, (*span)->bytes().subspan(2 * page_bytes, page_bytes), pattern(77, page_bytes));
    CHECK(read_from(*device, page_of(*device, 2)) == pattern(77, page_bytes));
  }
  for (const std::uint32_t page : {0, 1, 2, 3, 4}) {
    CAPTURE(page);
    CHECK(read_from(*device, page_of(*device, page)) == pattern(page == 2 ? 77 : page, page_bytes));
  }
}

TEST_CASE("two spans over the same pages see each other's writes") {
  const auto device = made(2);
  const PageExtent both{PageId{0}, Pages{2}};
  auto writes = device->map({&both, 1}, Access::read_write);
  auto reads = device->map({&both, 1}, Access::read);
  REQUIRE(writes);
  REQUIRE(reads);
  const auto bytes = pattern(5, (*writes)->bytes().size());
  write_to(*device, (*writes)->bytes(), bytes);
  CHECK(read_from(*device, (*reads)->bytes()) == bytes);
}

TEST_CASE("another process reads shared pages in the order in which they were shared") {
  Peer peer("read");
  const auto device = made(5);
  number_pages(*device);
  auto shared = device->share(kScattered);
  REQUIRE(shared);
  REQUIRE(send_pages(peer.socket(), HandOverVerb::pages, "", *shared));
  CHECK(peer.end() == 0);
}

TEST_CASE("descriptors of shared pages are not inherited by programs that this process starts") {
  const auto device = made(5);
  for (const SharedPages& one : device->share(kScattered).value())
    CHECK((fcntl(one.file.number(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("what another process writes to shared pages is in the device") {
  Peer peer("write");
  const auto device = made(3);
  const PageExtent last{PageId{1}, Pages{2}};
  const std::size_t page_bytes = device->arena().page_bytes;
  number_pages(*device);
  REQUIRE(send_pages(peer.socket(), HandOverVerb::pages, "", device->share({&last, 1}).value()));
  CHECK(peer.end() == 0);
  const auto written = pattern(100, 2 * page_bytes);
  CHECK(read_from(*device, {page_of(*device, 1).data(), 2 * page_bytes}) == written);
  CHECK(read_from(*device, page_of(*device, 0)) == pattern(0, page_bytes));
}

TEST_CASE("a process that imported pages for reading cannot write them") {
  Peer peer("write_what_is_read_only");
  const auto device = made(3);
  number_pages(*device);
  const PageExtent all{PageId{0}, Pages{3}};
  REQUIRE(send_pages(peer.socket(), HandOverVerb::pages, "", device->share({&all, 1}).value()));
  CHECK(peer.end() == (device->host_access() ? -SIGSEGV : kRefused));
  for (std::uint32_t page = 0; page < 3; ++page)
    CHECK(read_from(*device, page_of(*device, page)) == pattern(page, device->arena().page_bytes));
}

TEST_CASE("imported pages stay when the device that shared them has ended") {
  Peer peer("read_later");
  {
    const auto device = made(5);
    number_pages(*device);
    REQUIRE(send_pages(peer.socket(), HandOverVerb::pages, "", device->share(kScattered).value()));
    REQUIRE(receive_part(peer.socket(), Waiting::allowed));
  }
  const auto next = made(5);  // Takes what the first has given back.
  const std::vector<std::byte> zeros(next->arena().page_bytes);
  for (std::uint32_t page = 0; page < 5; ++page) write_to(*next, page_of(*next, page), zeros);
  REQUIRE(send_part(peer.socket(), {.verb = HandOverVerb::done}, Waiting::allowed));
  CHECK(peer.end() == 0);
}

TEST_CASE("a process that dies with imported pages takes nothing from the device") {
  Peer peer("read_later");
  const auto device = made(5);
  number_pages(*device);
  REQUIRE(send_pages(peer.socket(), HandOverVerb::pages, "", device->share(kScattered).value()));
  REQUIRE(receive_part(peer.socket(), Waiting::allowed));
  peer.kill();
  for (std::uint32_t page = 0; page < 5; ++page)
    CHECK(read_from(*device, page_of(*device, page)) == pattern(page, device->arena().page_bytes));
}

TEST_CASE("files that are no memory of a device are not imported") {
  const auto device = made(1);
  std::vector<SharedPages> foreign;
  foreign.push_back({FileDescriptor(open("/dev/zero", O_RDWR | O_CLOEXEC)), 0, device->arena().page_bytes});
  CHECK_FALSE(device->import(foreign, Access::read));
  CHECK_FALSE(device->import({}, Access::read));
}

namespace {

/// Places that cut [0, bytes) into pieces of 0 to `longest` bytes.
std::vector<std::size_t> cuts(std::size_t bytes, std::size_t longest, std::mt19937_64& random) {
  std::vector<std::size_t> cuts{0};
  while (cuts.back() < bytes) cuts.push_back(std::min(bytes, cuts.back() + random() % (longest + 1)));
  return cuts;
}

/// Pieces that put all of `from` into `to` in a random order; `expected` learns what memcpy makes of them.
std::vector<CopyPiece> shuffled(std::span<std::byte> to, std::span<const std::byte> from,
                                std::span<const std::byte> source, std::vector<std::byte>& expected,
                                std::mt19937_64& random) {
  const auto edges = cuts(from.size(), from.size() / 50, random);
  std::vector<std::size_t> order(edges.size() - 1);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  expected.resize(from.size());
  std::vector<CopyPiece> pieces;
  std::size_t at = 0;
  for (const std::size_t i : order) {
    const std::size_t bytes = edges[i + 1] - edges[i];
    pieces.push_back({to.data() + at, from.data() + edges[i], bytes});
    std::memcpy(expected.data() + at, source.data() + edges[i], bytes);
    at += bytes;
  }
  return pieces;
}

}  // namespace

TEST_CASE("a copy of many pieces, into, within and out of the device, is what memcpy makes of them") {
  constexpr std::uint64_t kSeed = 20261130;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  const auto device = made(6);
  const std::size_t bytes = 3 * device->arena().page_bytes;
  const std::span lower(device->arena().base, bytes);
  const std::span upper(device->arena().base + bytes, bytes);
  auto in = device->host_buffer(Bytes(std::int64_t(bytes))).value();
  auto out = device->host_buffer(Bytes(std::int64_t(bytes))).value();
  std::ranges::copy(pattern(1, bytes), in->bytes().begin());
  std::vector<std::byte> first;
  std::vector<std::byte> second;
  std::vector<std::byte> third;
  REQUIRE(device->copy(shuffled(lower, in->bytes(), in->bytes(), first, random)));
  CHECK(read_from(*device, lower) == first);
  REQUIRE(device->copy(shuffled(upper, lower, first, second, random)));
  CHECK(read_from(*device, upper) == second);
  REQUIRE(device->copy(shuffled(out->bytes(), upper, second, third, random)));
  CHECK(std::ranges::equal(out->bytes(), third));
  CHECK(device->copy({}));
}

TEST_CASE("threads copy at the same time without a byte in the wrong place") {
  constexpr std::uint32_t kThreads = 6;  // More than any device has lanes for copies.
  const auto device = made(kThreads);
  const std::size_t bytes = device->arena().page_bytes;
  std::array<int, kThreads> wrong{};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t round = 0; round < 8; ++round) {
          const auto sent = pattern(t * 100 + round, bytes);
          const bool written = bool(try_write(*device, page_of(*device, t), sent));
          const auto read = try_read(*device, page_of(*device, t));
          wrong[t] += !written || !read || *read != sent;
        }
      });
    }
  }
  CHECK(std::ranges::count(wrong, 0) == kThreads);
}

TEST_CASE("a host buffer has the size that was asked for and can be written to its last byte") {
  const auto device = made(1);
  auto buffer = device->host_buffer(Bytes{12345});
  REQUIRE(buffer);
  REQUIRE((*buffer)->bytes().size() == 12345);
  std::ranges::copy(pattern(3, 12345), (*buffer)->bytes().begin());
  CHECK(std::ranges::equal((*buffer)->bytes(), pattern(3, 12345)));
  CHECK_FALSE(device->host_buffer(Bytes{0}));
}

}  // namespace sangam
