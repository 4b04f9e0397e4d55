// Lists of descriptors across a socket, and what is no such list.
#include "gpu/device/hand_over.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <thread>

#include "tests/unit/gpu_device/numbered_files.hpp"

using namespace sangam;

namespace {

struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    near = FileDescriptor(ends[0]);
    far = FileDescriptor(ends[1]);
  }
  FileDescriptor near;
  FileDescriptor far;
};

int open_files() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace

TEST_CASE("a list arrives whole and in order, however many messages it takes") {
  for (const std::uint32_t count : {0U, 1U, 252U, 253U, 254U, 506U, 700U}) {
    CAPTURE(count);
    SocketPair sockets;
    const auto sent = numbered_files(1000, count);
    std::jthread sender([&] { (void)send_pages(sockets.near.number(), HandOverVerb::pages, "list", sent); });
    const auto received = receive_pages(sockets.far.number(), HandOverVerb::pages, 700);
    REQUIRE(received);
    CHECK(are_numbered(*received, 1000, count));
  }
}

TEST_CASE(
    "a list longer than the receiver allows is refused with both numbers, and its descriptors are closed") {
  SocketPair sockets;
  const int before = open_files();
  {
    const auto sent = numbered_files(0, 11);
    REQUIRE(send_pages(sockets.near.number(), HandOverVerb::pages, "list", sent));
    const auto received = receive_pages(sockets.far.number(), HandOverVerb::pages, 10);
    REQUIRE(!received);
    CHECK(received.error().code == ErrorCode::exhausted);
    CHECK(received.error().context == "a list of 11 pages; at most 10 are taken: use larger pages");
  }
  CHECK(open_files() == before);
}

TEST_CASE("bytes that are no message are refused with a reason") {
  struct Raw {
    std::uint32_t magic = 0x53474832;
    std::uint32_t verb = 3;
    std::uint32_t text_bytes = 0;
    std::uint32_t total = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t code = 0;
  };
  const auto refused = [](const Raw& raw, std::size_t bytes = sizeof(Raw)) {
    SocketPair sockets;
    std::array<std::byte, 2 * sizeof(Raw)> message{};
    std::memcpy(message.data(), &raw, sizeof raw);
    REQUIRE(send(sockets.near.number(), message.data(), bytes, 0) == ssize_t(bytes));
    const auto part = receive_part(sockets.far.number(), Waiting::allowed);
    return part ? std::string() : part.error().context;
  };
  CHECK(refused({}) == "");  // As it should be; each of the others differs in one number.
  CHECK(refused({}, 10).find("a message of 10 bytes") != std::string::npos);
  CHECK(refused({}, sizeof(Raw) + 1).find("in a message of 29 bytes") != std::string::npos);
  CHECK(refused({.magic = 1}).find("an unknown kind of message") != std::string::npos);
  CHECK(refused({.verb = 6}).find("an unknown kind of message") != std::string::npos);
  CHECK(refused({.text_bytes = 1}).find("a text of 1 bytes") != std::string::npos);
  CHECK(refused({.text_bytes = 0xffffffff}).find("a text of 4294967295 bytes") != std::string::npos);
  CHECK(refused({.count = 1}).find("1 pages in a message of 28 bytes") != std::string::npos);
  CHECK(refused({.first = 1}).find("pages 1 to 1 of 0") != std::string::npos);
  CHECK(refused({.code = 1000}).find("an unknown kind of message") != std::string::npos);
}

TEST_CASE("parts that do not continue the list are refused") {
  ArrivingPages list(10);
  REQUIRE(
      list.add({.verb = HandOverVerb::put, .text = "a", .total = 3, .pages = numbered_files(0, 2)}).value() ==
      false);
  CHECK_FALSE(list.add(
      {.verb = HandOverVerb::put, .text = "b", .total = 3, .first = 2, .pages = numbered_files(0, 1)}));
  CHECK_FALSE(list.add(
      {.verb = HandOverVerb::put, .text = "a", .total = 4, .first = 2, .pages = numbered_files(0, 1)}));
  CHECK_FALSE(list.add(
      {.verb = HandOverVerb::put, .text = "a", .total = 3, .first = 1, .pages = numbered_files(0, 1)}));
  CHECK_FALSE(list.add({.verb = HandOverVerb::put, .text = "a", .total = 3, .first = 2}));
  CHECK(
      list.add(
              {.verb = HandOverVerb::put, .text = "a", .total = 3, .first = 2, .pages = numbered_files(2, 1)})
          .value());
}

TEST_CASE("what was sent before the other side closed is received, also when it closed without reading") {
  SocketPair sockets;
  REQUIRE(send_part(sockets.far.number(), {.verb = HandOverVerb::done}, Waiting::allowed));
  REQUIRE(send_part(sockets.near.number(), {.verb = HandOverVerb::refused, .text = "why"}, Waiting::allowed));
  sockets.near = FileDescriptor();
  const auto last = receive_part(sockets.far.number(), Waiting::allowed);
  REQUIRE(last);
  REQUIRE(*last);
  CHECK((*last)->text == "why");
  const auto closed = receive_part(sockets.far.number(), Waiting::allowed);
  REQUIRE(!closed);
  CHECK(closed.error().code == ErrorCode::unavailable);
}
