// Trials that are kept, found again, and not believed where something does not fit.
#include "actors/merger/run/trajectory.hpp"

#include <doctest/doctest.h>

#include "tests/unit/storage/folder.hpp"

namespace sangam::merging {
namespace {

const Digest kRun = digest_of(std::string_view("a run"));
const Digest kFirst = digest_of(std::string_view("a state"));
const Digest kSecond = digest_of(std::string_view("another state"));
const std::vector<Verdict> kSaid{{1000, 3, 1, 0.1 + 0.2, true}, {400, 40, 0, 10.0, false}};

}  // namespace

TEST_CASE("what was appended is recalled by the next process, bit for bit") {
  tests::TemporaryFolder folder;
  Digest head;
  {
    auto store = Store::open(folder.path()).value();
    auto trajectory = Trajectory::open(store, kRun).value();
    REQUIRE(trajectory.append(kFirst, kSaid));
    REQUIRE(trajectory.append(kSecond, {}));
    head = trajectory.head();
  }
  auto store = Store::open(folder.path()).value();
  const auto trajectory = Trajectory::open(store, kRun).value();
  CHECK(trajectory.size() == 2);
  CHECK(trajectory.head() == head);
  CHECK(trajectory.recall(0, kFirst).value() == std::optional(kSaid));
  CHECK(trajectory.recall(1, kSecond).value()->empty());
  CHECK_FALSE(trajectory.recall(2, kFirst).value().has_value());
}

TEST_CASE("another run's trials, and another state than was tried, are refused") {
  tests::TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  auto trajectory = Trajectory::open(store, kRun).value();
  REQUIRE(trajectory.append(kFirst, kSaid));
  CHECK(trajectory.recall(0, kSecond).error().code == ErrorCode::corrupt);
  const auto other = Trajectory::open(store, kFirst);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().context.find("another pool") != std::string::npos);
}

TEST_CASE("a folder in which nothing was tried is anybody's") {
  tests::TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  REQUIRE(Trajectory::open(store, kRun).has_value());
  CHECK(Trajectory::open(store, kFirst).has_value());
}

TEST_CASE("a trial that was changed, or is missing, breaks the chain") {
  tests::TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  {
    auto trajectory = Trajectory::open(store, kRun).value();
    for (int i = 0; i < 3; ++i) REQUIRE(trajectory.append(kFirst, kSaid));
  }
  const std::string key = "trial/000000001";
  const std::string was = store.get(Family::trajectory, key).value().value();
  std::string changed = was;
  changed.replace(changed.find("accepted"), 8, "rejected");
  REQUIRE(store.put(Family::trajectory, key, changed));
  CHECK(Trajectory::open(store, kRun).error().context.find("trial/000000002") != std::string::npos);
  REQUIRE(store.put(Family::trajectory, key, was));
  CHECK(Trajectory::open(store, kRun).has_value());
  const std::string last = "trial/000000002";
  const std::string last_was = store.get(Family::trajectory, last).value().value();
  std::string last_changed = last_was;
  last_changed.replace(last_changed.find("accepted"), 8, "rejected");
  REQUIRE(store.put(Family::trajectory, last, last_changed));
  CHECK(Trajectory::open(store, kRun).error().context.find("end") != std::string::npos);
  REQUIRE(store.erase(Family::trajectory, last));
  CHECK(Trajectory::open(store, kRun).error().code == ErrorCode::corrupt);
  REQUIRE(store.put(Family::trajectory, last, last_was));
  REQUIRE(store.erase(Family::trajectory, key));
  CHECK(Trajectory::open(store, kRun).error().code == ErrorCode::corrupt);
}

}  // namespace sangam::merging
