// Traces: both formats, what is refused and how, scaling and cutting.
#include "sim/trace/trace.hpp"

#include <cmath>
#include <cstdlib>
#include <map>

#include "sim/trace/trace_file.hpp"
#include "tests/unit/storage/folder.hpp"

using namespace sangam;
using namespace sangam::sim;
using namespace sangam::tests;

namespace {

const std::string kHeader = "arrival_s,app,input_tokens,output_tokens\n";

/// `count` requests of one app, one each `gap`.
Trace steady(std::size_t count, Micros gap) {
  Trace trace{{"app"}, {}};
  for (std::size_t i = 0; i < count; ++i) trace.requests.push_back({gap * std::int64_t(i), 0, Tokens(10), Tokens(2)});
  return trace;
}

}  // namespace

TEST_CASE("a CSV trace is read as it is written, in order of arrival, apps in order of appearance") {
  const TemporaryFolder folder;
  const auto trace = read_trace(folder.write("t.csv", kHeader + "1.5,chat,100,7\r\n0.000001,code,3,1\n2,chat,8,9")).value();
  CHECK(trace.apps == std::vector<std::string>{"chat", "code"});
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.requests[0].arrival == Micros(1));
  CHECK(trace.requests[0].app == 1);
  CHECK(trace.requests[1].arrival == Micros(1'500'000));
  CHECK(trace.requests[1].input == Tokens(100));
  CHECK(trace.requests[2].output == Tokens(9));
}

TEST_CASE("what is written is read again, plain and compressed, to the microsecond") {
  const TemporaryFolder folder;
  const Trace trace{{"a b", "ä"}, {{Micros(0), 1, Tokens(1), Tokens(1)}, {Micros(3'000'007), 0, Tokens(32'768), Tokens(8'192)}}};
  for (const char* name : {"t.csv", "t.csv.gz"}) {
    REQUIRE(write_trace(trace, folder.path() / name).has_value());
    const auto again = read_trace(folder.path() / name).value();
    CHECK(again.apps == std::vector<std::string>{"ä", "a b"});
    CHECK(again.requests[1].arrival == Micros(3'000'007));
    CHECK(again.requests[1].input == Tokens(32'768));
    CHECK(again.requests[1].output == Tokens(8'192));
  }
  CHECK(content_of(folder.path() / "t.csv") == kHeader + "0.000000,ä,1,1\n3.000007,a b,32768,8192\n");
  CHECK(content_of(folder.path() / "t.csv.gz").substr(0, 2) == "\x1f\x8b");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("Mooncake's JSON lines are one app's, in milliseconds") {
  const TemporaryFolder folder;
  const auto path = folder.write("talk.jsonl", R"({"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46]}
{"timestamp": 0, "input_length": 1, "output_length": 1})");
  const auto trace = read_trace(path).value();
  CHECK(trace.apps == std::vector<std::string>{"talk"});
  CHECK(trace.requests[1].arrival == Micros(27'482'000));
  CHECK(trace.requests[1].input == Tokens(6955));
  CHECK(trace.requests[1].output == Tokens(52));
}

TEST_CASE("a malformed line is refused with its place, its field and what was expected") {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> cases = {
      {"1.0,chat,3", "3 fields"},          {"1.0,chat,3,4,5", "5 fields"},      {"-1,chat,3,4", "arrival_s is '-1'"},
      {"nan,chat,3,4", "arrival_s"},       {"1e10,chat,3,4", "arrival_s"},      {"1.0x,chat,3,4", "arrival_s"},
      {"1.0,,3,4", "app is ''"},           {"1.0,\"a\",3,4", "app is"},         {"1.0,chat,0,4", "input_tokens is '0'"},
      {"1.0,chat,3.5,4", "input_tokens"},  {"1.0,chat,3,", "output_tokens"},    {"1.0,chat,3,99999999999999999999", "output_tokens"},
  };
  for (const auto& [line, what] : cases) {
    const auto path = folder.write("t.csv", kHeader + "0.5,chat,1,1\n" + line + "\n");
    const auto trace = read_trace(path);
    REQUIRE_FALSE(trace.has_value());
    CHECK(trace.error().code == ErrorCode::invalid_input);
    INFO(trace.error().context);
    CHECK(has(trace.error().context, path.string() + ":3: "));
    CHECK(has(trace.error().context, what));
  }
  const auto json = read_trace(folder.write("m.jsonl", "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}\n{\"timestamp\": 2, \"input_length\": 0}\n"));
  CHECK(has(json.error().context, "m.jsonl:2"));
  CHECK(has(json.error().context, "input_length"));
}

TEST_CASE("files that hold no trace are refused") {
  const TemporaryFolder folder;
  CHECK(read_trace(folder.path() / "none").error().code == ErrorCode::not_found);
  CHECK(read_trace(folder.path()).error().code == ErrorCode::invalid_input);
  CHECK(has(read_trace(folder.write("e", "")).error().context, "is empty"));
  CHECK(has(read_trace(folder.write("h", kHeader)).error().context, "holds no request"));
  CHECK(has(read_trace(folder.write("o", "time,who\n")).error().context, "expected arrival_s,app"));
  CHECK(has(read_trace(folder.write("l", kHeader + std::string(2 << 20, '1'))).error().context, ":2: a line of more than"));
  REQUIRE(write_trace(steady(1000, Micros(7)), folder.path() / "t.csv.gz").has_value());
  const auto whole = content_of(folder.path() / "t.csv.gz");
  const auto cut = read_trace(folder.write("cut.csv.gz", whole.substr(0, whole.size() / 2)));
  REQUIRE_FALSE(cut.has_value());
  CHECK(cut.error().code == ErrorCode::corrupt);
  CHECK_FALSE(write_trace(steady(1, Micros(1)), folder.path() / "none" / "t.csv").has_value());
}

TEST_CASE("thinning keeps a share of the requests and their instants") {
  const auto trace = steady(10'000, Micros(100));
  const auto thin = scaled(trace, {0.25, 1.0, 7}).value();
  CHECK(thin.requests.size() > 2'500 - 4 * 44);  // Four standard deviations of Binomial(10000, 1/4).
  CHECK(thin.requests.size() < 2'500 + 4 * 44);
  for (const auto& request : thin.requests) CHECK(request.arrival.count() % 100 == 0);
  const auto again = scaled(trace, {0.25, 1.0, 7}).value();
  CHECK(again.requests.size() == thin.requests.size());
  CHECK(scaled(trace, {0.25, 1.0, 8}).value().requests.back().arrival != thin.requests.back().arrival);
}

TEST_CASE("more requests come within their original's second, and not at once") {
  const auto trace = steady(20, Millis(500));  // Two a second.
  const auto dense = scaled(trace, {3.0, 1.0, 7}).value();
  REQUIRE(dense.requests.size() == 60);
  std::map<std::int64_t, int> by_second;
  std::map<Micros, int> by_instant;
  for (const auto& request : dense.requests) {
    ++by_second[request.arrival / Seconds(1)];
    ++by_instant[request.arrival];
  }
  CHECK(by_second.size() == 10);
  for (const auto& [second, count] : by_second) CHECK(count == 6);
  CHECK(by_instant.size() == 60);
  CHECK(std::is_sorted(dense.requests.begin(), dense.requests.end(), [](const auto& a, const auto& b) { return a.arrival < b.arrival; }));
}

TEST_CASE("a faster trace is as long in requests and shorter in time") {
  const auto fast = scaled(steady(101, Seconds(48)), {1.0, 48.0, 1}).value();
  CHECK(fast.requests.size() == 101);
  CHECK(fast.requests.back().arrival == Seconds(100));
  for (const double wrong : {0.0, -1.0, std::nan(""), 1e9}) {
    CHECK(scaled(steady(1, Micros(1)), {wrong, 1.0, 1}).error().code == ErrorCode::invalid_input);
    CHECK(scaled(steady(1, Micros(1)), {1.0, wrong, 1}).error().code == ErrorCode::invalid_input);
  }
}

TEST_CASE("lengths grow and shrink to a token at least") {
  const auto shorter = scaled(steady(1, Micros(1)), {1.0, 1.0, 1, 0.2}).value().requests.front();
  CHECK(shorter.input == Tokens(2));
  CHECK(shorter.output == Tokens(1));  // Of 0.4.
  CHECK(scaled(steady(1, Micros(1)), {1.0, 1.0, 1, 3.0}).value().requests.front().output == Tokens(6));
  CHECK(scaled(steady(1, Micros(1)), {1.0, 1.0, 1, -1.0}).error().code == ErrorCode::invalid_input);
}

TEST_CASE("a range is half open and begins at nought; a limit takes the first") {
  const auto part = between(steady(10, Seconds(1)), Seconds(3), Seconds(5));
  REQUIRE(part.requests.size() == 2);
  CHECK(part.requests[0].arrival == Micros(0));
  CHECK(part.requests[1].arrival == Seconds(1));
  CHECK(limited(steady(10, Seconds(1)), 4).requests.size() == 4);
  CHECK(limited(steady(3, Seconds(1)), 4).requests.size() == 3);
}

TEST_CASE("published traces can be read" * doctest::skip(std::getenv("SANGAM_TRACES") == nullptr)) {
  const std::filesystem::path folder = std::getenv("SANGAM_TRACES");
  const std::map<std::string, std::size_t> requests = {
      {"azure2023_conv_code_1h", 28'185}, {"burstgpt_day1_first10h", 383}, {"mooncake_conversation", 12'031}, {"w0_synth_60k_x48", 60'300}};
  for (const auto& [name, count] : requests) CHECK(read_trace(folder / (name + ".csv.gz")).value().requests.size() == count);
}
