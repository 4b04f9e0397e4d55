// What the oracle hears of requests that have ended.
#include <doctest/doctest.h>

#include "gateway/core/gateway_core.hpp"
#include "tests/unit/gateway/word_text.hpp"

using namespace sangam;

namespace {

const ModelId kModel("A-arith");
const ActorName kOracle("oracle");

Instant at(std::int64_t millis) { return Instant(Millis(millis)); }

/// A core with its queue and one call of two choices, whose first token is due within 100 ms.
struct Desk {
  explicit Desk(bool with_oracle = true) {
    core.on(ActorFound{queue_of(kModel), Incarnation{1}}, at(0), out);
    if (with_oracle) core.on(ActorFound{kOracle, Incarnation{1}}, at(0), out);
    ClientCall call{.model = kModel, .prompts = {{1, 2, 3}}, .n = 2, .text = testing::byte_text()};
    call.service_class = ServiceClass::deadline;
    call.ttft = Millis(100);
    call.sampling.max_tokens = Tokens{8};
    id = core.open(std::move(call), at(1000), out);
    for (const Outbox::Letter& letter : out.letters) {
      if (const auto* submit = std::get_if<Submit>(&letter.message)) requests.push_back(submit->request);
    }
    REQUIRE(requests.size() == 2);
  }
  void produce(std::size_t choice, std::uint64_t first, std::vector<TokenId> ids, Instant when,
               FinishReason finish = FinishReason::none) {
    TokensProduced produced;
    produced.request = requests[choice];
    produced.first = first;
    produced.tokens = std::move(ids);
    produced.finish = finish;
    core.on(produced, when, out);
  }
  /// The instant for which the core's timer is set; nothing where it is not.
  std::optional<Instant> alarm() const {
    std::optional<Instant> found;
    for (const Outbox::Alarm& alarm : out.alarms) {
      if (alarm.timer == ServedDesk::kTimer) found = alarm.at;
    }
    return found;
  }
  std::vector<Served> told(Instant now) {
    out.clear();
    core.wake(ServedDesk::kTimer, now, out);
    std::vector<Served> found;
    for (const Outbox::Letter& letter : out.letters) {
      const auto* served = std::get_if<Served>(&letter.message);
      if (served != nullptr && letter.to == kOracle) found.push_back(*served);
    }
    return found;
  }

  GatewayCore core{GatewayOptions{}};
  Outbox out;
  CallId id{};
  std::vector<RequestId> requests;
};

}  // namespace

TEST_CASE("each choice that ends is told with its times, together, half a second after the first") {
  Desk desk;
  desk.produce(0, 0, {'a'}, at(1080));
  desk.produce(0, 1, {'b', 'c'}, at(1140), FinishReason::stop);
  CHECK(desk.alarm() == at(1640));
  desk.produce(1, 0, {'a'}, at(1150), FinishReason::length);
  const auto letters = desk.told(at(1640));
  REQUIRE(letters.size() == 1);
  CHECK(letters.front().gateway == ActorName("gateway/1"));
  REQUIRE(letters.front().requests.size() == 2);
  const ServedRequest& early = letters.front().requests[0];
  CHECK(early.model == kModel);
  CHECK(early.input == Tokens(3));
  CHECK(early.output == Tokens(3));
  CHECK(early.ttft == Millis(80));
  CHECK(early.tpot == Millis(30));  // Two tokens in 60 ms.
  CHECK(early.ttft_slo == Millis(100));
  CHECK(early.tpot_slo == Millis(0));
  CHECK(early.late == Tokens(0));
  CHECK(early.code == ErrorCode::none);
  const ServedRequest& late = letters.front().requests[1];
  CHECK(late.ttft == Millis(150));
  CHECK(late.tpot == Micros(0));
  CHECK(late.late == Tokens(1));
  CHECK(desk.told(at(2140)).empty());
}

TEST_CASE("of a call that fails, each choice that had not ended is told with the reason, all its tokens late") {
  Desk desk;
  desk.produce(0, 0, {'a', 'b'}, at(1050));
  desk.core.on(Refused{desk.requests[1], 1, ErrorCode::queue_full, "full", Millis(5)}, at(1060), desk.out);
  const auto letters = desk.told(at(1560));
  REQUIRE(letters.size() == 1);
  REQUIRE(letters.front().requests.size() == 2);
  CHECK(letters.front().requests[0].code == ErrorCode::queue_full);
  CHECK(letters.front().requests[0].late == Tokens(2));
  CHECK(letters.front().requests[1].output == Tokens(0));
}

TEST_CASE("a client that leaves is told as cancelled: its end says nothing of our speed") {
  Desk desk;
  desk.core.close(desk.id, at(1010), desk.out);
  const auto letters = desk.told(at(1510));
  REQUIRE(letters.size() == 1);
  CHECK(letters.front().requests[0].code == ErrorCode::cancelled);
}

TEST_CASE("without an oracle nothing is kept, and one that is lost takes what it had not heard with it") {
  Desk alone(false);
  alone.produce(0, 0, {'a'}, at(1080), FinishReason::stop);
  CHECK_FALSE(alone.alarm().has_value());
  Desk desk;
  desk.produce(0, 0, {'a'}, at(1080), FinishReason::stop);
  desk.core.on(ActorLost{kOracle, Incarnation{1}, "crashed"}, at(1100), desk.out);
  CHECK(desk.told(at(1580)).empty());
}
