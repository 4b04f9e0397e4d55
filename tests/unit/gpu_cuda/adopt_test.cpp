// A pool outlives the process that made it: a holder keeps the descriptors, and a successor takes them.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "gpu/device/cuda/cuda_device.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"
#include "tests/unit/gpu_cuda/driver_double.hpp"

using namespace sangam;

namespace {

constexpr std::int64_t kPage = 2 << 20;
constexpr std::uint32_t kPages = 300;  // More than one message carries.
constexpr PageExtent kAll{PageId{0}, Pages{kPages}};

/// Makes a pool, fills it, gives its descriptors away and waits to be killed.
[[noreturn]] void own_a_pool(int socket) {
  DriverDouble machine({.memory = kPages * kPage}, [](const std::string& what) {
    std::fprintf(stderr, "owner: broken rule of the driver: %s\n", what.c_str());
    _exit(97);
  });
  auto device = CudaDevice::create(machine.driver(),
                                   {.ordinal = 0, .size = Bytes(kPages * kPage), .page = Bytes(kPage)});
  if (!device) _exit(1);
  for (std::uint32_t page = 0; page < kPages; ++page) {
    const auto head = pattern(page, 4096);
    const CopyPiece piece{(*device)->arena().at(PageId{page}), head.data(), head.size()};
    if (!(*device)->copy({&piece, 1})) _exit(2);
  }
  auto shared = (*device)->share({&kAll, 1});
  if (!shared || !send_pages(socket, HandOverVerb::pages, "pool", *shared)) _exit(3);
  pause();
  _exit(4);
}

}  // namespace

TEST_CASE("a successor adopts the pool of a process that was killed, byte for byte, and shares it on") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const FileDescriptor ours(ends[0]);
  std::vector<SharedPages> kept;
  {
    const FileDescriptor theirs(ends[1]);
    const pid_t owner = fork();
    REQUIRE(owner >= 0);
    if (owner == 0) own_a_pool(theirs.number());
    kept = receive_pages(ours.number(), HandOverVerb::pages, kPages).value();
    REQUIRE(kill(owner, SIGKILL) == 0);
    int status = 0;
    REQUIRE(waitpid(owner, &status, 0) == owner);
    REQUIRE(WIFSIGNALED(status));
  }

  DriverDouble machine({.memory = kPages * kPage});
  std::vector<SharedPages> again;
  {
    auto adopted = CudaDevice::adopt(machine.driver(), 0, kept);
    REQUIRE(adopted);
    kept.clear();
    CHECK((*adopted)->pages() == Pages{kPages});
    CHECK((*adopted)->arena().page_bytes == kPage);
    for (const std::uint32_t page : {0U, 1U, 252U, 253U, kPages - 1})
      CHECK(read_from(**adopted, page_of(**adopted, page).first(4096)) == pattern(page, 4096));
    write_to(**adopted, page_of(**adopted, 7), pattern(7007, kPage));
    again = (*adopted)->share({&kAll, 1}).value();
  }
  auto third = CudaDevice::adopt(machine.driver(), 0, again);
  REQUIRE(third);
  CHECK(read_from(**third, page_of(**third, 7)) == pattern(7007, kPage));
}

TEST_CASE("pages of two sizes, no pages, and lists with a foreign file in them are not adopted") {
  DriverDouble machine;
  auto small =
      CudaDevice::create(machine.driver(), {.ordinal = 0, .size = Bytes(2 * kPage), .page = Bytes(kPage)})
          .value();
  auto large =
      CudaDevice::create(machine.driver(), {.ordinal = 0, .size = Bytes(4 * kPage), .page = Bytes(2 * kPage)})
          .value();
  const std::string held = machine.held();
  const PageExtent both{PageId{0}, Pages{2}};

  auto mixed = small->share({&both, 1}).value();
  for (SharedPages& one : large->share({&both, 1}).value()) mixed.push_back(std::move(one));
  const auto of_two = CudaDevice::adopt(machine.driver(), 0, mixed);
  REQUIRE(!of_two);
  CHECK(of_two.error().code == ErrorCode::invalid_input);

  CHECK_FALSE(CudaDevice::adopt(machine.driver(), 0, {}));

  auto foreign = small->share({&both, 1}).value();
  foreign[1].file = FileDescriptor(dup(STDERR_FILENO));
  CHECK_FALSE(CudaDevice::adopt(machine.driver(), 0, foreign));
  CHECK(machine.held() == held);
}
