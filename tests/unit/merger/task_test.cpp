// Task files as text, their refusals, tokens, and the three samples.
#include "actors/merger/evaluation/task.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "tests/unit/merger/pool_fixture.hpp"

namespace sangam::merging {
namespace {

std::vector<TokenId> bytes_of(std::string_view text, bool is_prompt) {
  std::vector<TokenId> tokens;
  if (is_prompt) tokens.push_back(kBos);
  for (const char c : text) tokens.push_back(TokenId(static_cast<unsigned char>(c)));
  return tokens;
}

std::string refusal_of(std::string_view text) {
  const auto task = parse_task(text, "sums.jsonl");
  return task.has_value() ? "accepted" : task.error().context;
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a task's kind is told by its fields") {
  const auto exact = parse_task("{\"prompt\": \"2+2=\", \"answer\": \"4\"}\n\n{\"prompt\": \"2+2=\", \"answer\": \"4\"}\r\n", "t").value();
  CHECK(exact.kind == TaskKind::exact);
  REQUIRE(exact.items.size() == 2);
  CHECK(exact.items[0].answers == std::vector<std::string>{"4"});
  CHECK(exact.items[1].line == 3);
  CHECK(exact.prompts_repeated == 1);
  const auto choice = parse_task(R"({"prompt": "2+2=", "choices": ["3", "4"], "answer": 1})", "t").value();
  CHECK(choice.kind == TaskKind::choice);
  CHECK(choice.items[0].answers == std::vector<std::string>{"3", "4"});
  CHECK(choice.items[0].right == 1);
  const auto agreement = parse_task(R"({"prompt": "2+2="})", "t").value();
  CHECK(agreement.kind == TaskKind::agreement);
  CHECK(agreement.items[0].answers.empty());
  CHECK(agreement.prompts_repeated == 0);
}

TEST_CASE("a wrong task is refused with its line, its field and what to do") {
  CHECK(holds(refusal_of(""), "sums.jsonl: holds no item; write one JSON object"));
  CHECK(holds(refusal_of("\n \n"), "sums.jsonl: holds no item"));
  CHECK(holds(refusal_of("{\"prompt\": \"a\"}\n{\"prompt\": "), "sums.jsonl:2: not valid JSON"));
  CHECK(holds(refusal_of("[1]"), "sums.jsonl:1: holds [1], not a JSON object"));
  CHECK(holds(refusal_of(R"({"answer": "4"})"), "sums.jsonl:1: prompt: is missing"));
  CHECK(holds(refusal_of(R"({"prompt": "", "answer": "4"})"), "sums.jsonl:1: prompt = \"\": must not be empty"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "answer": ""})"), "answer = \"\": must not be empty"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "answer": 4})"), "answer = 4: must be a string"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "answr": "4"})"), "answr = \"4\": is no field of an item; state prompt, choices and answer only"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "choices": ["b"], "answer": 0})"), "choices = [\"b\"]: must be two or more"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "choices": ["b", 7], "answer": 0})"), "must be texts"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "choices": "bc", "answer": 0})"), "must be a list"));
  CHECK(holds(refusal_of(R"({"prompt": "a", "choices": ["b", "c"]})"), "sums.jsonl:1: answer: is missing"));
  for (const char* answer : {"2", "-1", "0.5", "\"b\""}) {
    const auto text = std::string(R"({"prompt": "a", "choices": ["b", "c"], "answer": )") + answer + "}";
    CHECK(holds(refusal_of(text), "must be an integer from 0 to 1"));
  }
  CHECK(holds(refusal_of("{\"prompt\": \"a\", \"answer\": \"b\"}\n{\"prompt\": \"a\"}"),
              "sums.jsonl:2: is an item of kind agreement, but those before are of kind exact; give each kind its own file"));
  CHECK_FALSE(load_task("/no/such/file").has_value());
}

TEST_CASE("a shipped task becomes the tokens of its texts") {
  const auto task = load_task(SANGAM_SOURCE_DIR "/models/eval/arith.jsonl").value();
  REQUIRE(task.items.size() == 2400);
  const auto items = tokenized(task, bytes_of).value();
  const auto keys = shipped_items("arith", 0, 2400);
  REQUIRE(items.size() == keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    REQUIRE(items[i].prompt == keys[i].prompt);
    REQUIRE(items[i].answers.at(items[i].right) == keys[i].answer);
  }
}

TEST_CASE("a text that has no tokens is refused with its line") {
  const auto nothing_for_x = [](std::string_view text, bool is_prompt) {
    return text == "x" ? std::vector<TokenId>() : bytes_of(text, is_prompt);
  };
  const auto refusal = [&](std::string_view text) { return tokenized(parse_task(text, "t").value(), nothing_for_x).error().context; };
  CHECK(refusal("\n{\"prompt\": \"x\"}") == "t:2: prompt has no tokens in this model's vocabulary; remove the item");
  CHECK(holds(refusal(R"({"prompt": "a", "answer": "x"})"), "t:1: answer has no tokens"));
  CHECK(holds(refusal(R"({"prompt": "a", "choices": ["b", "x"], "answer": 0})"), "t:1: one of choices has no tokens"));
}

TEST_CASE("a split is the same on every machine") {
  // The 64-bit Mersenne twister and the shuffle, written anew from their definitions in another language.
  const auto splits = split_items(10, {.profile = 1, .gate = 2, .shadow = 2}, 42).value();
  CHECK(splits.profile == std::vector<std::uint32_t>{1, 7});
  CHECK(splits.gate == std::vector<std::uint32_t>{9, 0, 3, 8});
  CHECK(splits.shadow == std::vector<std::uint32_t>{4, 2, 5, 6});
  CHECK(splits.digest == digest_of("1,7,;9,0,3,8,;4,2,5,6,;"));
}

TEST_CASE("samples are disjoint, hold every item, and differ in name where they differ") {
  for (const std::size_t count : {3, 7, 750, 2400}) {
    const auto splits = split_items(count, {.profile = 1, .gate = 1, .shadow = 1}, 5).value();
    std::vector<std::uint32_t> all;
    for (const auto* list : {&splits.profile, &splits.gate, &splits.shadow}) {
      all.insert(all.end(), list->begin(), list->end());
      CHECK(list->size() >= count / 3);
      CHECK(list->size() <= (count + 2) / 3);
    }
    std::sort(all.begin(), all.end());
    REQUIRE(all.size() == count);
    for (std::size_t i = 0; i < count; ++i) REQUIRE(all[i] == i);
  }
  const auto first = split_items(100, {}, 1).value();
  CHECK(first.digest == split_items(100, {}, 1).value().digest);
  CHECK(first.digest != split_items(100, {}, 2).value().digest);
  CHECK(first.digest != split_items(100, {.profile = 2, .gate = 2, .shadow = 2}, 1).value().digest);
  const auto unshared = split_items(9, {.profile = 0, .gate = 1, .shadow = 0}, 1).value();
  CHECK(unshared.gate.size() == 9);
}

TEST_CASE("every item is as likely at the beginning of a sample as any other") {
  // 6000 shuffles of six items: a place holds an item 1000 times, standard deviation 29.
  std::array<int, 6> first_of_gate{};
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    ++first_of_gate[split_items(6, {.profile = 1, .gate = 1, .shadow = 1}, seed).value().gate.front()];
  }
  for (const int times : first_of_gate) {
    CHECK(times >= 880);
    CHECK(times <= 1120);
  }
}

TEST_CASE("a split that leaves a sample empty or has no sense is refused") {
  const auto refusal = [](std::size_t count, const SplitShares& shares) { return split_items(count, shares, 1).error().context; };
  CHECK(refusal(2, {.profile = 1, .gate = 1, .shadow = 1}) ==
        "split of 2 items as profile:gate:shadow = 1:1:1: leaves one of them without items; give more items or other shares");
  CHECK(holds(refusal(9, {.profile = 0, .gate = 0, .shadow = 0}), "all shares are 0; give one at least 1"));
  CHECK(holds(refusal(9, {.profile = -1, .gate = 1, .shadow = 1}), "a share must be from 0 to 1000000"));
  CHECK(holds(refusal(0, {}), "without items"));
}

}  // namespace sangam::merging
