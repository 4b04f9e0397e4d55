// Predictions of first tokens: asked for, passed on to clients, and measured.
#include <doctest/doctest.h>

#include <sstream>

#include "gateway/api/quotes.hpp"
#include "gateway/core/gateway_core.hpp"
#include "gateway/core/quote_desk.hpp"
#include "gateway/metrics/metrics.hpp"
#include "tests/unit/gateway/open_door.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

const ModelId kModel("A-arith");
const ActorName kScheduler("scheduler"), kGateway("gateway/1");
const std::string kQuote = "/v1/deadline/quote";

Instant at(std::int64_t millis) { return Instant(Millis(millis)); }

AskQuote question(std::uint64_t id) {
  AskQuote ask;
  ask.request = RequestId{id};
  ask.model = kModel;
  return ask;
}

Quoted quoted(RequestId request, Attempt attempt, std::int64_t earliest, std::int64_t latest) {
  return {request, attempt, Millis(earliest), Millis(latest), ErrorCode::none, Millis(0)};
}

/// A core whose queue is there, with one open call of so many choices.
struct Desk {
  explicit Desk(std::int64_t n) {
    core.on(ActorFound{queue_of(kModel), Incarnation{1}}, at(0), out);
    ClientCall call{.model = kModel, .prompts = {{1, 2, 3}}, .n = n, .text = byte_text()};
    call.sampling.max_tokens = Tokens{8};
    core.open(std::move(call), at(100), out);
    for (const auto& letter : out.letters) requests.push_back(std::get<Submit>(letter.message).request);
  }
  void first_token(std::int64_t ms, RequestId request) {
    TokensProduced produced;
    produced.request = request;
    produced.tokens = {TokenId('a')};
    core.on(produced, at(ms), out);
  }
  std::vector<CallQuoted> told() {
    std::vector<CallQuoted> found;
    for (const CallEvent& event : core.take_events()) {
      if (const auto* quote = std::get_if<CallQuoted>(&event.what)) found.push_back(*quote);
    }
    return found;
  }
  std::vector<QuoteMeasured> measured() {
    std::vector<QuoteMeasured> found;
    for (const Measurement& fact : core.take_measurements()) {
      if (const auto* quote = std::get_if<QuoteMeasured>(&fact)) found.push_back(*quote);
    }
    return found;
  }

  GatewayCore core{GatewayOptions{}};
  Outbox out;
  std::vector<RequestId> requests;
};

std::string body(const std::string& more = "") {
  return R"({"model":"bytes","prompt":"1+1=","max_tokens":5)" + more + "}";
}

/// The value of a sample line; -1 where there is none.
double sample(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  }
  return -1.0;
}

}  // namespace

TEST_CASE("a question goes to the scheduler and is answered once") {
  QuoteDesk desk(kGateway, Millis{500});
  desk.found(kScheduler);
  Outbox out;
  desk.open(question(7), at(0), out);
  REQUIRE(out.letters.size() == 1);
  CHECK(out.letters[0].to == kScheduler);
  CHECK(std::get<AskQuote>(out.letters[0].message).answer_to == kGateway);
  REQUIRE(out.alarms.size() == 1);
  CHECK(out.alarms[0].at == at(500));
  desk.answered(quoted(RequestId{7}, 0, 3, 9));
  desk.answered(quoted(RequestId{7}, 0, 3, 9));
  desk.answered(quoted(RequestId{8}, 0, 3, 9));
  desk.wake(at(500), out);
  const auto ended = desk.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].question == RequestId{7});
  CHECK(ended[0].answer->latest == Millis{9});
}

TEST_CASE("a scheduler that is away, is lost, or keeps silent gives an error, each question in its time") {
  QuoteDesk desk(kGateway, Millis{500});
  Outbox out;
  const auto why_of = [&](std::uint64_t id) {
    const auto ended = desk.take_ended();
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].question == RequestId{id});
    REQUIRE_FALSE(ended[0].answer.has_value());
    CHECK(ended[0].answer.error().code == ErrorCode::unavailable);
    return ended[0].answer.error().message;
  };
  desk.open(question(1), at(0), out);
  CHECK(out.letters.empty());
  CHECK(why_of(1) == "The scheduler is away at the moment; try again.");
  desk.found(kScheduler);
  desk.open(question(2), at(0), out);
  desk.lost({ActorName("worker/1"), Incarnation{1}, "killed"});
  CHECK(desk.take_ended().empty());
  desk.lost({kScheduler, Incarnation{1}, "killed"});
  CHECK(why_of(2) == "The scheduler was lost (killed); try again.");
  desk.found(kScheduler);
  desk.open(question(3), at(100), out);
  desk.open(question(4), at(300), out);
  desk.close(RequestId{4});
  desk.wake(at(599), out);
  CHECK(desk.take_ended().empty());
  desk.wake(at(600), out);
  CHECK(why_of(3) == "The scheduler did not answer within 500 ms (quote_within); try again.");
  desk.wake(at(800), out);
  CHECK(desk.take_ended().empty());
}

TEST_CASE("a call is told the widest bounds of all its choices, since it came, and once") {
  Desk desk(2);
  desk.core.on(quoted(desk.requests[0], 1, 20, 60), at(110), desk.out);
  CHECK(desk.told().empty());
  desk.core.on(quoted(desk.requests[1], 2, 1, 2), at(110), desk.out);  // Of no such attempt.
  desk.core.on(quoted(desk.requests[1], 1, 5, 0), at(110), desk.out);  // Nothing is known.
  CHECK(desk.told().empty());
  desk.core.on(quoted(desk.requests[1], 1, 30, 50), at(120), desk.out);
  const auto told = desk.told();
  REQUIRE(told.size() == 1);
  CHECK(told[0].earliest == Millis{30});
  CHECK(told[0].latest == Millis{70});
  desk.core.on(quoted(desk.requests[1], 1, 900, 999), at(121), desk.out);
  CHECK(desk.told().empty());
}

TEST_CASE("a first token is early, inside or late by the first quote, bounds included") {
  const auto outcome = [](std::int64_t ms) {
    Desk desk(1);
    desk.core.on(quoted(desk.requests[0], 1, 20, 60), at(110), desk.out);
    desk.core.on(quoted(desk.requests[0], 1, 500, 600), at(111), desk.out);
    desk.first_token(ms, desk.requests[0]);
    const auto measured = desk.measured();
    REQUIRE(measured.size() == 1);
    CHECK(measured[0].model == kModel);
    CHECK(measured[0].width == Millis{40});
    return measured[0].outcome;
  };
  CHECK(outcome(129) == QuoteOutcome::early);
  CHECK(outcome(130) == QuoteOutcome::inside);
  CHECK(outcome(170) == QuoteOutcome::inside);
  CHECK(outcome(171) == QuoteOutcome::late);
}

TEST_CASE("without a quote nothing is measured, nor with one that comes after the token") {
  Desk desk(1);
  desk.first_token(150, desk.requests[0]);
  desk.core.on(quoted(desk.requests[0], 1, 20, 60), at(151), desk.out);
  CHECK(desk.told().empty());
  CHECK(desk.measured().empty());
}

TEST_CASE("times off the wire at their extremes are kept in bounds") {
  Desk desk(1);
  desk.core.on(quoted(desk.requests[0], 1, INT64_MAX, INT64_MAX), at(110), desk.out);
  const auto told = desk.told();
  REQUIRE(told.size() == 1);
  CHECK(told[0].latest >= told[0].earliest);
  CHECK(told[0].latest < Millis(std::chrono::hours(24 * 367)));
}

TEST_CASE("coverage and width are read from the metrics") {
  Metrics metrics({ModelId("m")});
  const std::string of_model = "{engine=\"0\",model_name=\"m\"";
  for (int i = 0; i < 9; ++i) metrics.count(QuoteMeasured{ModelId("m"), QuoteOutcome::inside, Millis{100}});
  metrics.count(QuoteMeasured{ModelId("m"), QuoteOutcome::late, Millis{600}});
  const std::string text = metrics.text(MeshView(), 0, 0);
  CHECK(sample(text, "sangam_ttft_quotes_total" + of_model + ",outcome=\"inside\"}") == 9);
  CHECK(sample(text, "sangam_ttft_quotes_total" + of_model + ",outcome=\"late\"}") == 1);
  CHECK(sample(text, "sangam_ttft_quotes_total" + of_model + ",outcome=\"early\"}") == 0);
  CHECK(sample(text, "sangam_ttft_quote_width_seconds_sum" + of_model + "}") == doctest::Approx(1.5));
  CHECK(sample(text, "sangam_ttft_quote_width_seconds_count" + of_model + "}") == 10);
}

TEST_CASE("an answer says when its first token was expected, if the mesh had said so") {
  OpenDoor door;
  bool quotes = true;
  door.mesh.on_submit = [&](const Submit& submit) {
    if (quotes) door.mesh.tell(quoted(submit.request, submit.attempt, 20'000, 60'000));
    door.mesh.answer(submit, "ok");
  };
  for (const std::string more : {"", R"(,"stream":true)"}) {
    const RawReply reply = door.post("/v1/completions", body(more));
    CHECK(reply.status == 200);
    REQUIRE(reply.headers.contains("x-sangam-ttft-earliest-ms"));
    const auto earliest = std::stoll(reply.headers.at("x-sangam-ttft-earliest-ms"));
    const auto latest = std::stoll(reply.headers.at("x-sangam-ttft-latest-ms"));
    CHECK(earliest >= 20'000);  // Since the call came, which was a little before the quote.
    CHECK(earliest < 40'000);
    CHECK(latest - earliest >= 40'000);
    CHECK(latest - earliest <= 40'001);
  }
  quotes = false;
  CHECK_FALSE(door.post("/v1/completions", body()).headers.contains("x-sangam-ttft-earliest-ms"));
}

TEST_CASE("a quote is asked for like the request that it is about, and nothing is submitted") {
  OpenDoor door;
  door.mesh.tell(ActorFound{kScheduler, Incarnation{1}});
  std::vector<AskQuote> asked;
  bool submitted = false;
  door.mesh.on_submit = [&](const Submit&) { submitted = true; };
  door.mesh.on_ask = [&](const AskQuote& ask) {
    asked.push_back(ask);
    door.mesh.tell(quoted(ask.request, 0, 20, 60));
  };
  const RawReply reply = door.post(kQuote, body(), "x-slo-ttft-ms: 800\r\n");
  CHECK(reply.status == 200);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].model == ModelId("org/bytes"));
  CHECK(asked[0].service_class == ServiceClass::deadline);
  CHECK(asked[0].ttft_in == Millis{800});
  CHECK(asked[0].prefill_tokens == Tokens{4});
  CHECK(asked[0].output_max == Tokens{5});
  CHECK(asked[0].answer_to == kGateway);
  const auto right = parsed(R"({"object":"deadline.quote","model":"bytes","class":"deadline","prompt_tokens":4,
    "earliest_ms":20,"latest_ms":60,"coverage":0.9,"feasible":true,"feasible_in_ms":0})");
  CHECK(parsed(reply.body) == right);
  const auto chat = door.post(kQuote, R"({"model":"bytes","messages":[{"role":"user","content":"hi"}]})");
  CHECK(chat.status == 200);
  CHECK(parsed(chat.body).at("class") == "normal");
  CHECK(asked.size() == 2);
  CHECK_FALSE(submitted);
}

TEST_CASE("what cannot be on time is an answer, and what is not known is null") {
  OpenDoor door;
  door.mesh.tell(ActorFound{kScheduler, Incarnation{1}});
  Quoted answer;
  door.mesh.on_ask = [&](const AskQuote& ask) {
    answer.request = ask.request;
    door.mesh.tell(answer);
  };
  answer.code = ErrorCode::cannot_be_on_time;
  answer.feasible_in = Millis{340};
  auto told = parsed(door.post(kQuote, body()).body);
  CHECK(told.at("earliest_ms").is_null());
  CHECK(told.at("latest_ms").is_null());
  CHECK(told.at("feasible") == false);
  CHECK(told.at("feasible_in_ms") == 340);
  answer.feasible_in = Millis{0};
  told = parsed(door.post(kQuote, body()).body);
  CHECK(told.at("feasible_in_ms").is_null());
  answer.code = ErrorCode::not_found;
  CHECK(door.post(kQuote, body()).status == 404);
}

TEST_CASE("a question that cannot be asked says why") {
  GatewayOptions options;
  options.times.quote_within = Millis{30};
  OpenDoor door(options);
  const auto code_of = [](const RawReply& reply) {
    return std::string(parsed(reply.body).at("error").at("code").as_string());
  };
  CHECK(door.post(kQuote, body()).status == 503);  // No scheduler is here.
  door.mesh.tell(ActorFound{kScheduler, Incarnation{1}});
  const RawReply silent = door.post(kQuote, body());
  CHECK(silent.status == 503);
  CHECK(code_of(silent) == "service_unavailable");
  CHECK(silent.headers.at("x-should-retry") == "true");
  CHECK(door.post(kQuote, R"({"model":"cold/model","prompt":"a"})").status == 503);  // Its queue is away.
  CHECK(door.post(kQuote, R"({"model":"nobody","prompt":"a"})").status == 404);
  CHECK(door.post(kQuote, R"({"model":"bytes"})").status == 400);
  CHECK(door.post(kQuote, "{").status == 400);
  CHECK(door.post(kQuote, body(), "x-slo-ttft-ms: soon\r\n").status == 400);
  CHECK(door.get(kQuote).status == 405);
}
