// EPDT by hand: estimates, what corrects them, and what must not be counted twice.
#include "actors/scheduler/prefill_line.hpp"

#include <doctest/doctest.h>

using namespace sangam;

namespace {

Instant at(std::int64_t ms) { return Instant(Millis(ms)); }

constexpr RequestId kA{1}, kB{2}, kC{3};

}  // namespace

TEST_CASE("an empty line is free now, whatever has been before") {
  PrefillLine line;
  CHECK(line.free_at(at(7)) == at(7));
  line.add(kA, Millis(10), at(7));
  line.finish(kA, at(9));
  CHECK(line.free_at(at(20)) == at(20));
}

TEST_CASE("prefills queue up behind each other") {
  PrefillLine line;
  line.add(kA, Millis(10), at(0));
  line.add(kB, Millis(20), at(5));
  CHECK(line.free_at(at(5)) == at(30));
}

TEST_CASE("a prefill that ends sooner or later than expected shifts those behind it") {
  PrefillLine line;
  line.add(kA, Millis(10), at(0));
  line.add(kB, Millis(20), at(0));
  line.add(kC, Millis(30), at(0));
  line.finish(kA, at(4));
  CHECK(line.free_at(at(4)) == at(54));
  line.finish(kB, at(30));
  CHECK(line.free_at(at(30)) == at(60));
}

TEST_CASE("an overdue prefill pushes back what is behind it, and is not counted twice when it ends") {
  PrefillLine line;
  line.add(kA, Millis(10), at(0));
  line.add(kB, Millis(20), at(0));
  CHECK(line.free_at(at(10)) == at(30));
  CHECK(line.free_at(at(15)) == at(35));
  line.add(kC, Millis(5), at(15));
  CHECK(line.free_at(at(15)) == at(40));
  line.finish(kA, at(16));
  CHECK(line.free_at(at(16)) == at(41));
}

TEST_CASE("a dropped prefill gives its time back to those behind it only") {
  PrefillLine line;
  line.add(kA, Millis(10), at(0));
  line.add(kB, Millis(20), at(0));
  line.add(kC, Millis(30), at(0));
  line.drop(kB, at(2));
  CHECK(line.free_at(at(2)) == at(40));
  line.finish(kA, at(10));
  CHECK(line.free_at(at(10)) == at(40));
}

TEST_CASE("what was dropped in work gives back only the rest, since time does not run backwards") {
  PrefillLine line;
  line.add(kA, Millis(100), at(0));
  line.add(kB, Millis(50), at(0));
  line.drop(kA, at(60));
  CHECK(line.free_at(at(60)) == at(110));
  line.drop(kB, at(70));
  CHECK(line.free_at(at(70)) == at(70));
}

TEST_CASE("prefills that end out of order leave the line right") {
  PrefillLine line;
  line.add(kA, Millis(10), at(0));
  line.add(kB, Millis(100), at(0));
  line.add(kC, Millis(50), at(0));
  line.finish(kB, at(12));
  CHECK(line.free_at(at(12)) == at(64));  // A, overdue, ends at 12 at best, with what C was given behind.
  line.finish(kA, at(13));
  CHECK(line.free_at(at(13)) == at(65));
  line.finish(kC, at(80));
  CHECK(line.free_at(at(80)) == at(80));
}

TEST_CASE("ends of what is not in the line change nothing") {
  PrefillLine line;
  line.add(kA, Millis(10), at(0));
  line.finish(kB, at(50));
  line.drop(kC, at(50));
  CHECK(line.size() == 1);
  CHECK(line.free_at(at(0)) == at(10));
}
