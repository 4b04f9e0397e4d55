// The gateway's core with literal events: admission, tokens, losses, duplicates, ends.
#include <doctest/doctest.h>

#include "gateway/core/gateway_core.hpp"
#include "tests/unit/gateway/word_text.hpp"

using namespace sangam;

namespace {

const ModelId kModel("A-arith");
const ActorName kQueue = queue_of(kModel);
const ActorName kWorker("worker/1");
const ActorName kOther("worker/2");

Instant at(std::int64_t millis) {
  return Instant(Millis(millis));
}

/// A core with its queue present, and what it says.
struct Desk {
  explicit Desk(GatewayOptions options = {}) : core(with_incarnation(std::move(options))) {
    core.on(ActorFound{kQueue, Incarnation{1}}, at(0), out);
    core.on(ActorFound{kWorker, Incarnation{1}}, at(0), out);
  }
  static GatewayOptions with_incarnation(GatewayOptions options) {
    options.incarnation = Incarnation{7};
    return options;
  }
  static ClientCall call(std::int64_t n = 1) {
    ClientCall call{.model = kModel, .prompts = {{1, 2, 3}}, .n = n, .text = testing::byte_text()};
    call.sampling.max_tokens = Tokens{8};
    call.sampling.seed = 40;
    return call;
  }
  std::vector<Outbox::Letter> letters() {
    auto taken = std::move(out.letters);
    out.clear();
    return taken;
  }
  template <class M>
  std::vector<M> sent() {
    std::vector<M> found;
    for (auto& letter : letters()) {
      if (auto* message = std::get_if<M>(&letter.message)) found.push_back(*message);
    }
    return found;
  }
  /// The text of one choice so far, and all events after it.
  std::string text(std::size_t choice = 0) {
    for (CallEvent& event : core.take_events()) events.push_back(std::move(event));
    std::string all;
    for (const CallEvent& event : events) {
      const auto* delta = std::get_if<TextDelta>(&event.what);
      if (delta && delta->choice == choice) all += delta->text;
    }
    return all;
  }
  template <class E>
  std::vector<E> told() {
    (void)text();
    std::vector<E> found;
    for (const CallEvent& event : events) {
      if (const auto* e = std::get_if<E>(&event.what)) found.push_back(*e);
    }
    return found;
  }
  TokensProduced tokens(const Submit& submit, std::uint64_t first, std::vector<TokenId> ids,
                        FinishReason finish = FinishReason::none) {
    return {.request = submit.request,
            .attempt = submit.attempt,
            .first = first,
            .tokens = std::move(ids),
            .logprobs = {},
            .finish = finish,
            .why = {}};
  }

  GatewayCore core;
  Outbox out;
  std::vector<CallEvent> events;
};

Submit only(std::vector<Submit> submits) {
  REQUIRE(submits.size() == 1);
  return submits.front();
}

}  // namespace

TEST_CASE("a call is submitted, admitted, told in text and ended with its usage") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  CHECK(std::uint64_t(submit.request) == ((std::uint64_t{7} << 32) | 1));
  CHECK(submit.attempt == 1);
  CHECK(submit.prompt == std::vector<TokenId>{1, 2, 3});
  CHECK(submit.tokens_to == ActorName("gateway/1"));
  desk.core.on(Accepted{submit.request, 1}, at(1), desk.out);
  CHECK(desk.told<CallAdmitted>().size() == 1);
  desk.core.on(Started{submit.request, 1, kWorker, Millis{2}}, at(3), desk.out);
  TokensProduced first = desk.tokens(submit, 0, {'o', 'k'});
  first.cached = Tokens{2};
  desk.core.on(first, at(5), desk.out);
  CHECK(desk.text() == "ok");
  desk.core.on(desk.tokens(submit, 2, {'!'}, FinishReason::stop), at(6), desk.out);
  CHECK(desk.text() == "ok!");
  REQUIRE(desk.told<CallEnded>().size() == 1);
  const TokenUsage usage = desk.told<CallEnded>().front().usage;
  CHECK(usage.prompt == Tokens{3});
  CHECK(usage.cached == Tokens{2});
  CHECK(usage.completion == Tokens{3});
  CHECK(desk.core.calls() == 0);
  CHECK(desk.letters().empty());
}

TEST_CASE("gateways with stores of their own that have started equally often use different ids") {
  GatewayOptions second;
  second.place = 1;
  GatewayOptions last;
  last.place = kGatewaysMax - 1;
  std::vector<std::uint64_t> ids;
  for (const GatewayOptions& options : {GatewayOptions{}, second, last}) {
    Desk desk(options);
    desk.core.open(Desk::call(), at(0), desk.out);
    ids.push_back(std::uint64_t(only(desk.sent<Submit>()).request));
  }
  // Place in the upper 8 bits, incarnation 7 in the next 24, then the count.
  CHECK(ids == std::vector<std::uint64_t>{0x00000007'00000001, 0x01000007'00000001, 0xff000007'00000001});
}

TEST_CASE("n choices are n requests with seeds of their own, admitted together") {
  Desk desk;
  desk.core.open(Desk::call(3), at(0), desk.out);
  const auto submits = desk.sent<Submit>();
  REQUIRE(submits.size() == 3);
  CHECK(submits[0].sampling.seed == 40);
  CHECK(submits[2].sampling.seed == 42);
  desk.core.on(Accepted{submits[0].request, 1}, at(1), desk.out);
  desk.core.on(Accepted{submits[2].request, 1}, at(1), desk.out);
  CHECK(desk.told<CallAdmitted>().empty());
  desk.core.on(Accepted{submits[1].request, 1}, at(1), desk.out);
  CHECK(desk.told<CallAdmitted>().size() == 1);
  for (std::size_t i = 0; i < 3; ++i) {
    desk.core.on(desk.tokens(submits[i], 0, {TokenId('a' + i)}, FinishReason::length), at(2), desk.out);
  }
  CHECK(desk.text(1) == "b");
  CHECK(desk.told<ChoiceEnded>().size() == 3);
  CHECK(desk.told<CallEnded>().front().usage.prompt == Tokens{3});
  CHECK(desk.told<CallEnded>().front().usage.completion == Tokens{3});
}

TEST_CASE("one refused choice fails the call and cancels the others") {
  Desk desk;
  desk.core.open(Desk::call(2), at(0), desk.out);
  const auto submits = desk.sent<Submit>();
  desk.core.on(Accepted{submits[0].request, 1}, at(1), desk.out);
  desk.core.on(Refused{submits[1].request, 1, ErrorCode::queue_full, "256 waiting", Millis{1500}}, at(1),
               desk.out);
  REQUIRE(desk.told<CallFailed>().size() == 1);
  CHECK(desk.told<CallFailed>().front().error.code == ErrorCode::queue_full);
  CHECK(desk.told<CallFailed>().front().error.retry_after == Millis{1500});
  CHECK(desk.told<CallAdmitted>().empty());
  const auto cancels = desk.sent<Cancel>();
  REQUIRE(cancels.size() == 2);
  CHECK(cancels[0].request == submits[0].request);
}

TEST_CASE("an interrupted request is submitted again with the tokens so far, and goes on where it was") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit first = only(desk.sent<Submit>());
  desk.core.on(Started{first.request, 1, kWorker, Millis{0}}, at(1), desk.out);
  desk.core.on(desk.tokens(first, 0, {'a', 'b'}), at(2), desk.out);
  desk.core.on(Interrupted{first.request, 1, "worker/1 was lost"}, at(3), desk.out);
  const Submit second = only(desk.sent<Submit>());
  CHECK(second.request == first.request);
  CHECK(second.attempt == 2);
  CHECK(second.generated == std::vector<TokenId>{'a', 'b'});
  desk.core.on(desk.tokens(first, 2, {'X'}), at(4), desk.out);  // Late, of the lost attempt.
  desk.core.on(desk.tokens(second, 2, {'c'}, FinishReason::stop), at(5), desk.out);
  CHECK(desk.text() == "abc");
  CHECK(desk.told<CallEnded>().front().usage.completion == Tokens{3});
}

TEST_CASE("the loss of the worker is acted upon once, whoever tells of it first") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit first = only(desk.sent<Submit>());
  desk.core.on(Started{first.request, 1, kWorker, Millis{0}}, at(1), desk.out);
  desk.core.on(ActorLost{kOther, Incarnation{1}, "killed"}, at(2), desk.out);
  CHECK(desk.sent<Submit>().empty());
  desk.core.on(ActorLost{kWorker, Incarnation{1}, "killed"}, at(2), desk.out);
  CHECK(only(desk.sent<Submit>()).attempt == 2);
  desk.core.on(Interrupted{first.request, 1, "worker/1 was lost"}, at(3), desk.out);
  CHECK(desk.sent<Submit>().empty());
  desk.core.on(ActorLost{kWorker, Incarnation{1}, "killed"}, at(4), desk.out);
  CHECK(desk.sent<Submit>().empty());
}

TEST_CASE("a lost queue is waited for; its return submits again; tokens that still come count") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit first = only(desk.sent<Submit>());
  desk.core.on(Accepted{first.request, 1}, at(1), desk.out);
  desk.core.on(ActorLost{kQueue, Incarnation{1}, "killed"}, at(2), desk.out);
  CHECK(desk.letters().empty());
  desk.core.on(desk.tokens(first, 0, {'a'}), at(3), desk.out);
  desk.core.on(ActorFound{kQueue, Incarnation{2}}, at(4), desk.out);
  const Submit second = only(desk.sent<Submit>());
  CHECK(second.attempt == 2);
  CHECK(second.generated == std::vector<TokenId>{'a'});
}

TEST_CASE("a queue that does not return in time fails the call") {
  GatewayOptions options;
  options.times.queue_back_within = Millis{500};
  Desk desk(options);
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(Accepted{submit.request, 1}, at(1), desk.out);
  desk.core.on(ActorLost{kQueue, Incarnation{1}, "killed"}, at(1000), desk.out);
  REQUIRE_FALSE(desk.out.alarms.empty());
  CHECK(desk.out.alarms.back().at == at(1500));
  desk.core.wake(desk.out.alarms.back().timer, at(1499), desk.out);
  CHECK(desk.told<CallFailed>().empty());
  desk.core.wake(Timer{0}, at(1500), desk.out);
  REQUIRE(desk.told<CallFailed>().size() == 1);
  CHECK(desk.told<CallFailed>().front().error.code == ErrorCode::unavailable);
}

TEST_CASE("a queue that never answers fails the call, and the alarm of an admitted call is a later one") {
  GatewayOptions options;
  options.times.accept_within = Millis{100};
  options.times.call_max = Millis{5000};
  Desk desk(options);
  desk.core.open(Desk::call(), at(0), desk.out);
  desk.core.open(Desk::call(), at(50), desk.out);
  const auto submits = desk.sent<Submit>();
  desk.core.on(Accepted{submits[0].request, 1}, at(60), desk.out);
  desk.core.wake(Timer{0}, at(150), desk.out);
  CHECK(desk.told<CallFailed>().size() == 1);
  CHECK(desk.core.calls() == 1);
  REQUIRE_FALSE(desk.out.alarms.empty());
  CHECK(desk.out.alarms.back().at == at(5000));
  desk.core.wake(Timer{0}, at(5000), desk.out);
  CHECK(desk.told<CallFailed>().back().error.code == ErrorCode::expired);
}

TEST_CASE("after attempts_max losses the call fails and says how often it was tried") {
  GatewayOptions options;
  options.limits.attempts_max = 3;
  Desk desk(options);
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  for (Attempt attempt = 1; attempt <= 3; ++attempt) {
    CHECK(desk.told<CallFailed>().empty());
    desk.core.on(Interrupted{submit.request, attempt, "it crashed"}, at(attempt), desk.out);
  }
  REQUIRE(desk.told<CallFailed>().size() == 1);
  CHECK(desk.told<CallFailed>().front().error.message.find("3 times") != std::string::npos);
  CHECK(desk.told<CallFailed>().front().error.message.find("it crashed") != std::string::npos);
}

TEST_CASE("tokens that were seen are dropped by their index, and only new ones are told") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(desk.tokens(submit, 0, {'a', 'b'}), at(1), desk.out);
  desk.core.on(desk.tokens(submit, 0, {'a', 'b'}), at(2), desk.out);
  desk.core.on(desk.tokens(submit, 1, {'b', 'c'}), at(3), desk.out);
  CHECK(desk.text() == "abc");
}

TEST_CASE("a gap in the tokens is a lost attempt, not a text with a hole") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(desk.tokens(submit, 0, {'a'}), at(1), desk.out);
  desk.core.on(desk.tokens(submit, 2, {'c'}), at(2), desk.out);
  CHECK(desk.text() == "a");
  const Submit again = only(desk.sent<Submit>());
  CHECK(again.attempt == 2);
  CHECK(again.generated == std::vector<TokenId>{'a'});
}

TEST_CASE("a stop string ends the choice and cancels the work on it") {
  Desk desk;
  ClientCall call = Desk::call();
  call.stop = {"b"};
  desk.core.open(std::move(call), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(desk.tokens(submit, 0, {'a', 'b', 'c'}), at(1), desk.out);
  CHECK(desk.text() == "a");
  CHECK(desk.told<ChoiceEnded>().front().finish == FinishReason::stop);
  CHECK(desk.told<CallEnded>().front().usage.completion == Tokens{2});
  CHECK(desk.sent<Cancel>().size() == 1);
}

TEST_CASE("closing a call cancels every open choice and says no more") {
  Desk desk;
  const CallId id = desk.core.open(Desk::call(2), at(0), desk.out);
  const auto submits = desk.sent<Submit>();
  desk.core.on(desk.tokens(submits[0], 0, {'a'}, FinishReason::stop), at(1), desk.out);
  desk.core.close(id, at(2), desk.out);
  const auto cancels = desk.sent<Cancel>();
  REQUIRE(cancels.size() == 1);
  CHECK(cancels[0].request == submits[1].request);
  desk.core.on(desk.tokens(submits[1], 0, {'b'}), at(3), desk.out);
  CHECK(desk.text(1).empty());
  CHECK(desk.core.calls() == 0);
}

TEST_CASE(
    "a worker that cancels by itself, or is too full, costs an attempt; another failure ends the call") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(desk.tokens(submit, 0, {'a'}, FinishReason::cancelled), at(1), desk.out);
  const Submit second = only(desk.sent<Submit>());
  TokensProduced full = desk.tokens(second, 1, {}, FinishReason::failed);
  full.code = ErrorCode::unavailable;
  desk.core.on(full, at(2), desk.out);
  const Submit third = only(desk.sent<Submit>());
  CHECK(third.attempt == 3);
  TokensProduced broken = desk.tokens(third, 1, {}, FinishReason::failed);
  broken.code = ErrorCode::internal;
  broken.why = "logits are not numbers";
  desk.core.on(broken, at(3), desk.out);
  CHECK(desk.told<CallFailed>().front().error.message == "logits are not numbers");
}

TEST_CASE(
    "a request whose last token has come is not submitted again for want of the word that it was the last") {
  Desk desk;
  ClientCall call = Desk::call();
  call.sampling.max_tokens = Tokens{2};
  desk.core.open(std::move(call), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(desk.tokens(submit, 0, {'a', 'b'}), at(1), desk.out);
  desk.core.on(Interrupted{submit.request, 1, "lost"}, at(2), desk.out);
  CHECK(desk.sent<Submit>().empty());
  CHECK(desk.told<ChoiceEnded>().front().finish == FinishReason::length);
}

TEST_CASE(
    "deadlines travel as the time that is left, and a loss never turns into lateness that drops the "
    "request") {
  Desk desk;
  ClientCall call = Desk::call();
  call.service_class = ServiceClass::deadline;
  call.ttft = Millis{400};
  call.ttl = Millis{300};
  desk.core.open(std::move(call), at(1000), desk.out);
  const Submit first = only(desk.sent<Submit>());
  CHECK(first.ttft_in == Millis{400});
  CHECK(first.expires_in == Millis{300});
  CHECK_FALSE(first.requeue_when_late);
  desk.core.on(Interrupted{first.request, 1, "lost"}, at(1100), desk.out);
  const Submit second = only(desk.sent<Submit>());
  CHECK(second.ttft_in == Millis{300});
  CHECK(second.expires_in == Millis{200});
  CHECK(second.requeue_when_late);
  desk.core.on(Started{second.request, 2, kWorker, Millis{0}}, at(1150), desk.out);
  desk.core.on(desk.tokens(second, 0, {'a'}), at(1160), desk.out);
  desk.core.on(Interrupted{second.request, 2, "lost"}, at(1900), desk.out);
  const Submit third = only(desk.sent<Submit>());
  CHECK(third.ttft_in ==
        Millis{400});  // The first token was on time; the next one has a due time of its own.
  CHECK(third.expires_in == Millis{0});  // It was begun in time.
}

TEST_CASE("without its queue a call is refused at once") {
  Desk desk;
  ClientCall call = Desk::call();
  call.model = ModelId("B-date");
  desk.core.open(std::move(call), at(0), desk.out);
  REQUIRE(desk.told<CallFailed>().size() == 1);
  CHECK(desk.told<CallFailed>().front().error.code == ErrorCode::unavailable);
  CHECK(desk.letters().empty());
}

TEST_CASE("more calls than calls_max are refused") {
  GatewayOptions options;
  options.limits.calls_max = 1;
  Desk desk(options);
  desk.core.open(Desk::call(), at(0), desk.out);
  desk.core.open(Desk::call(), at(0), desk.out);
  REQUIRE(desk.told<CallFailed>().size() == 1);
  CHECK(desk.told<CallFailed>().front().error.code == ErrorCode::exhausted);
}

TEST_CASE("a tenant's tokens are taken for the worst case, and given back when the call uses fewer") {
  GatewayOptions options;
  options.keys = {
      {.key = "k", .tenant = TenantId("t"), .requests_per_minute = 60, .tokens_per_minute = Tokens{11}}};
  Desk desk(options);
  ClientCall call = Desk::call();  // 3 of prompt and at most 8: all 11.
  call.tenant = TenantId("t");
  ClientCall second = call;
  const CallId id = desk.core.open(std::move(call), at(0), desk.out);
  CHECK(desk.core.rate_state(TenantId("t"), at(0)).tokens->remaining == 0);
  desk.core.open(std::move(second), at(0), desk.out);
  REQUIRE(desk.told<CallFailed>().size() == 1);
  CHECK(desk.told<CallFailed>().front().error.code == ErrorCode::queue_full);
  CHECK(desk.told<CallFailed>().front().error.retry_after == Millis{60'000});
  desk.core.close(id, at(0), desk.out);
  CHECK(desk.core.rate_state(TenantId("t"), at(0)).tokens->remaining == 8);
  CHECK(desk.core.rate_state(TenantId("t"), at(0)).requests->remaining == 59);
}

TEST_CASE("what the metrics learn of a choice is measured between the right events") {
  Desk desk;
  desk.core.open(Desk::call(), at(0), desk.out);
  const Submit submit = only(desk.sent<Submit>());
  desk.core.on(Accepted{submit.request, 1}, at(10), desk.out);
  desk.core.on(Started{submit.request, 1, kWorker, Millis{20}}, at(30), desk.out);
  desk.core.on(desk.tokens(submit, 0, {'a'}), at(70), desk.out);
  desk.core.on(desk.tokens(submit, 1, {'b', 'c'}, FinishReason::stop), at(100), desk.out);
  const auto measured = desk.core.take_measurements();
  REQUIRE(measured.size() == 3);
  CHECK(std::get<FirstTokenSeen>(measured[0]).after == Millis{70});
  CHECK(std::get<NextTokensSeen>(measured[1]).count == 2);
  CHECK(std::get<NextTokensSeen>(measured[1]).gap == Millis{30});
  const auto& choice = std::get<ChoiceMeasured>(measured[2]);
  CHECK(choice.whole == Millis{100});
  CHECK(choice.queued == Millis{30});
  CHECK(choice.prefill == Millis{40});
  CHECK(choice.decode == Millis{30});
  CHECK(choice.finish == "stop");
}
