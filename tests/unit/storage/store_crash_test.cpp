// The store across processes: killed after an acknowledgement, held by another, on a full and on a read-only
// disk.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include <cstdlib>
#include <random>

#include "storage/store/incarnation.hpp"
#include "storage/store/store.hpp"
#include "tests/unit/storage/child.hpp"
#include "tests/unit/storage/folder.hpp"

using namespace sangam;
using namespace sangam::tests;

namespace {

std::filesystem::path given_folder() {
  const char* folder = std::getenv(kChildFolder);
  REQUIRE(folder != nullptr);
  return folder;
}

std::string incompressible(std::size_t size) {
  std::mt19937_64 random(7);
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(random());
  return bytes;
}

/// Mounts a disk of its own at the folder, which only this process sees. False where that is not allowed.
bool mount_small_disk(const std::filesystem::path& folder, const char* options) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("none", folder.c_str(), "tmpfs", 0, options) == 0;
}

/// Runs a child that mounts a disk; what it could not do is said and not passed over.
void run_on_small_disk(const char* case_name) {
  TemporaryFolder folder;
  Child child(case_name, folder.path());
  const std::string verdict = child.next_report();
  if (verdict == "cannot mount\n") {
    MESSAGE("skipped: this user may not mount a tmpfs (needs root or user namespaces)");
    return;
  }
  while (!child.next_report().empty()) {
  }
  CHECK(verdict == "mounted\n");
  CHECK_MESSAGE(child.wait(), child.printed());
}

}  // namespace

TEST_CASE("child: takes incarnations until it is killed" * doctest::skip()) {
  auto store = Store::open(given_folder()).value();
  while (true) report(std::to_string(std::uint64_t(next_incarnation(store, "worker/1").value())));
}

TEST_CASE("an incarnation that was acknowledged is never given again, whenever the process is killed") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  TemporaryFolder folder;
  std::uint64_t last = 0;
  for (int kills = 0; kills < 6; ++kills) {
    Child child("child: takes incarnations until it is killed", folder.path());
    for (auto reports = 1 + random() % 20; reports > 0; --reports) {
      const std::string line = child.next_report();
      REQUIRE_MESSAGE(!line.empty(), child.printed());
      const std::uint64_t incarnation = std::stoull(line);
      CHECK(incarnation > last);
      last = incarnation;
    }
    child.kill();
  }
  auto store = Store::open(folder.path()).value();
  CHECK(next_incarnation(store, "worker/1").value() > Incarnation(last));
}

TEST_CASE("child: holds the store open until it is killed" * doctest::skip()) {
  const auto store = Store::open(given_folder()).value();
  report("open");
  ::pause();
}

TEST_CASE("a store that another process holds is refused by path, and free once that one is dead") {
  TemporaryFolder folder;
  Child child("child: holds the store open until it is killed", folder.path());
  REQUIRE(child.next_report() == "open\n");
  const auto refused = Store::open(folder.path());
  CHECK(refused.error().code == ErrorCode::unavailable);
  CHECK(has(refused.error().context, folder.path().string()));
  CHECK(has(refused.error().context, "another process has it open"));
  child.kill();
  CHECK(Store::open(folder.path()));
}

TEST_CASE("child: fills its small disk" * doctest::skip()) {
  const auto disk = given_folder();
  const bool mounted = mount_small_disk(disk, "size=24m");
  report(mounted ? "mounted" : "cannot mount");
  if (!mounted) return;
  const std::string value = incompressible(100'000);
  std::vector<std::string> kept;
  const auto check_kept = [&](const Store& store) {
    for (const std::string& key : kept) CHECK(store.get(Family::catalog, key).value() == value);
  };
  {
    auto store = Store::open(disk / "state").value();
    // A refused write lets RocksDB tidy up, which may make room for a few more; in the end there is none.
    for (int i = 0, refused = 0; i < 2000 && refused < 20; ++i) {
      const std::string key = "key" + std::to_string(i);
      const auto put = store.put(Family::catalog, key, value);
      if (put) kept.push_back(key);
      if (put) continue;
      ++refused;
      CAPTURE(put.error().context);
      CHECK(put.error().code == ErrorCode::exhausted);
      CHECK(has(put.error().context, (disk / "state").string()));
      CHECK(has(put.error().context, "free 16 MB"));
      check_kept(store);
    }
    CHECK(kept.size() >= 50);
    CHECK(kept.size() < 240);  // of 24 MB
  }
  REQUIRE(::mount("none", disk.c_str(), "tmpfs", MS_REMOUNT, "size=200m") == 0);
  auto store = Store::open(disk / "state").value();
  check_kept(store);
  CHECK(store.put(Family::meta, "after", "1"));
}

TEST_CASE("a full disk refuses writes as exhausted, and keeps and serves what was acknowledged") {
  run_on_small_disk("child: fills its small disk");
}

TEST_CASE("child: fills its disk and gets space" * doctest::skip()) {
  const auto disk = given_folder();
  const bool mounted = mount_small_disk(disk, "size=64m");
  report(mounted ? "mounted" : "cannot mount");
  if (!mounted) return;
  const std::string value = incompressible(100'000);
  const auto ballast = disk / "ballast";
  {
    auto store = Store::open(disk / "state").value();
    for (int round = 0; round < 2; ++round) {                // RocksDB itself waits for a second in each
      std::ofstream(ballast) << std::string(64 << 20, 'b');  // as much as fits
      Result<void> put;
      for (int i = 0; i < 1000 && put; ++i) put = store.put(Family::catalog, "filler", value);
      REQUIRE_FALSE(put);
      CHECK(put.error().code == ErrorCode::exhausted);
      std::filesystem::remove(ballast);
      const auto again = store.put(Family::meta, "after" + std::to_string(round), "1");
      CHECK_MESSAGE(again, again);
      CHECK(store.get(Family::meta, "after" + std::to_string(round)).value() == "1");
    }
  }
  auto store = Store::open(disk / "state").value();
  for (int round = 0; round < 2; ++round)
    CHECK(store.get(Family::meta, "after" + std::to_string(round)).value() == "1");
  CHECK(store.get(Family::catalog, "filler").value() == value);
}

TEST_CASE("a store whose disk was full writes again as soon as there is space") {
  run_on_small_disk("child: fills its disk and gets space");
}

TEST_CASE("child: opens a store on a read-only disk" * doctest::skip()) {
  const auto disk = given_folder();
  const bool mounted = mount_small_disk(disk, "size=24m");
  report(mounted ? "mounted" : "cannot mount");
  if (!mounted) return;
  CHECK(Store::open(disk / "state").value().put(Family::meta, "a", "1"));
  REQUIRE(::mount("none", disk.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
  const auto refused = Store::open(disk / "state");
  CHECK(refused.error().code == ErrorCode::invalid_input);
  CHECK(has(refused.error().context, "cannot be written"));
  CHECK(has(refused.error().context, (disk / "state").string()));
  CHECK(Store::open(disk / "new").error().code == ErrorCode::invalid_input);
}

TEST_CASE("a read-only disk is refused in words") {
  run_on_small_disk("child: opens a store on a read-only disk");
}
