// The limits on what waits, at their edges, and the hint that a refused client gets.
#include <doctest/doctest.h>

#include "tests/unit/queue/queue_kit.hpp"

using namespace sangam;
using namespace sangam::queue_kit;

namespace {

QueueOptions small() {
  QueueOptions options;
  options.waiting_requests_max = 3;
  options.waiting_tokens_max = Tokens(1'000);
  options.tenant_default = {.weight = 1, .waiting_requests_max = 2, .waiting_tokens_max = Tokens(600)};
  options.tenants[TenantId("big")] = {
      .weight = 1, .waiting_requests_max = 100, .waiting_tokens_max = Tokens(1'000'000)};
  return options;
}

Refused refused_on(Desk& desk, std::int64_t millis, const Submit& submit) {
  desk.tell(millis, submit);
  CHECK(desk.said<Accepted>().empty());
  CHECK(desk.said<Enqueued>().empty());
  return desk.only<Refused>(kGateway);
}

}  // namespace

TEST_CASE("the request beyond the limit is refused at once as queue_full, and the one at the limit is not") {
  Desk desk(small());
  for (std::uint64_t id = 1; id <= 3; ++id) {
    desk.tell(0, submit(id, 100, "big"));
    CHECK(desk.only<Accepted>(kGateway).request == RequestId(id));
  }
  const Refused refused = refused_on(desk, 0, submit(4, 100, "big"));
  CHECK(refused.request == RequestId(4));
  CHECK(refused.code == ErrorCode::queue_full);
  CHECK(refused.why.find("4/3 requests") != std::string::npos);
  CHECK(refused.retry_after == Millis(0));  // Nothing has been measured.
  CHECK(desk.status(0).refused == 1);
}

TEST_CASE("the limit in tokens counts prompt and max_tokens, and exactly the limit fits") {
  Desk desk(small());
  desk.tell(0, submit(1, 400, "big"));
  desk.tell(0, submit(2, 600, "big"));
  CHECK(desk.said<Accepted>().size() == 1);
  CHECK(desk.status(0).waiting_tokens == Tokens(1'000));
  const Refused refused = refused_on(desk, 0, submit(3, 11, "big"));
  CHECK(refused.code == ErrorCode::queue_full);
  CHECK(refused.why.find("1011/1000 tokens") != std::string::npos);
}

TEST_CASE("one tenant's limit leaves room for another") {
  Desk desk(small());
  desk.tell(0, submit(1, 100, "a"));
  desk.tell(0, submit(2, 100, "a"));
  const Refused refused = refused_on(desk, 0, submit(3, 100, "a"));
  CHECK(refused.code == ErrorCode::queue_full);
  CHECK(refused.why.find("tenant 'a'") != std::string::npos);
  desk.tell(0, submit(4, 100, "b"));
  CHECK(desk.only<Accepted>().request == RequestId(4));
}

TEST_CASE("a request that could never wait is refused as invalid, since repeating it cannot help") {
  Desk desk(small());
  CHECK(refused_on(desk, 0, submit(1, 601, "a")).code == ErrorCode::invalid_input);
  CHECK(refused_on(desk, 0, submit(2, 1'001, "big")).code == ErrorCode::invalid_input);
  desk.tell(0, submit(3, 600, "a"));
  CHECK(desk.said<Accepted>().size() == 1);
}

TEST_CASE("the hint is the time in which the measured drain makes room") {
  Desk desk(small());
  // Two run, three wait; each second one of 100 tokens completes and the next is dispatched and replaced.
  for (std::uint64_t id = 1; id <= 2; ++id) {
    desk.tell(0, submit(id, 100, "big"));
    desk.tell(0, dispatch(id));
  }
  for (std::uint64_t id = 3; id <= 5; ++id) desk.tell(0, submit(id, 100, "big"));
  for (std::uint64_t second = 1; second <= 8; ++second) {
    desk.tell(std::int64_t(second) * 1'000, ended(second));
    desk.tell(std::int64_t(second) * 1'000, dispatch(second + 2));
    desk.tell(std::int64_t(second) * 1'000, submit(second + 5, 100, "big"));
  }
  // 100 tokens a second. For one request more, one of the waiting (100 tokens on average) must leave.
  CHECK(refused_on(desk, 8'000, submit(100, 100, "big")).retry_after == Millis(1'000));
  // 300 tokens wait. For 950 more under 1,000, 250 must leave.
  CHECK(refused_on(desk, 8'000, submit(101, 950, "big")).retry_after == Millis(2'500));
}

TEST_CASE("a later attempt is exempt from the limits, since it was accepted before") {
  Desk desk(small());
  for (std::uint64_t id = 1; id <= 3; ++id) desk.tell(0, submit(id, 100, "big"));
  desk.tell(0, again(submit(9, 900, "big"), 2));  // The queue that knew attempt 1 is gone.
  CHECK(desk.only<Accepted>().request == RequestId(9));
  CHECK(desk.status(0).waiting == 4);
  CHECK(refused_on(desk, 0, submit(10, 11, "big")).code == ErrorCode::queue_full);
}

TEST_CASE("room is exactly what left: after cancels and dispatches the queue fills to the same limit") {
  Desk desk(small());
  for (int round = 0; round < 50; ++round) {
    const auto id = std::uint64_t(10 * round);
    for (std::uint64_t i = 1; i <= 3; ++i) {
      desk.tell(round, submit(id + i, 300, "big"));
      REQUIRE(desk.said<Accepted>().size() == 1);
    }
    REQUIRE(refused_on(desk, round, submit(id + 4, 300, "big")).code == ErrorCode::queue_full);
    desk.tell(round, Cancel{RequestId(id + 1)});
    desk.tell(round, dispatch(id + 2));
    desk.tell(round, ended(id + 2));
    desk.tell(round, Cancel{RequestId(id + 3)});
  }
  CHECK(desk.status(50).waiting_tokens == Tokens(0));
}
