// What every Device must show, whatever is behind it: one list of tests, linked into a binary for each back
// end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device/device.hpp"
#include "gpu/device/hand_over.hpp"

namespace sangam {

/// Each binary that links device_behaviours.cpp defines `device_under_test()`.
struct DeviceUnderTest {
  std::function<Result<std::unique_ptr<Device>>(Pages)> make;
  /// Peers are started by exec of this program as `--peer ROLE`, with their socket as descriptor 3; else by
  /// fork.
  bool peers_start_afresh = false;
};
const DeviceUnderTest& device_under_test();

/// What a peer in another process does, and its exit code: 0 if all was as it should be. `socket`: to its
/// starter.
int run_peer(const std::string& role, int socket);

/// Another process in a role; it is killed if the test ends before it.
class Peer {
 public:
  explicit Peer(const std::string& role);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] int socket() const { return socket_.number(); }
  /// Waits for its end: its exit code, or minus the signal that ended it.
  int end();
  void kill();

 private:
  FileDescriptor socket_;
  pid_t process_ = -1;
};

/// The bytes that fill a page in these tests; another `seed`, other bytes.
std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes);

/// Device memory through `copy` and a host buffer, which every device has.
void write_to(Device& device, std::span<std::byte> place, std::span<const std::byte> bytes);
std::vector<std::byte> read_from(Device& device, std::span<const std::byte> place);
std::span<std::byte> page_of(const Device& device, std::uint32_t page);
/// Page p of the device gets pattern(p).
void number_pages(Device& device);

}  // namespace sangam
