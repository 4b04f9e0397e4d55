// The pool's models give the tokens and logits that their reference run gave.
#include <doctest/doctest.h>

#include <algorithm>

#include "storage/checkpoint/model_folder.hpp"
#include "tests/unit/gpu_model/every_isa.hpp"
#include "tests/unit/gpu_model/json_file.hpp"
#include "tests/unit/gpu_model/paged_sequences.hpp"

namespace sangam::testing {
namespace {

/// KV is kept in 16-bit floats, the reference in 32: relative errors of 2^-11 in keys and values.
constexpr double kLogitTolerance = 0.02;

void check_item(Model& model, const boost::json::object& item) {
  PagedSequences sequences(model, 16, 16);
  const std::size_t s = sequences.add();
  std::vector<float> logits = sequences.prefill(s, tokens_of(item.at("prompt_ids")), 1000);
  CHECK(distance(logits, item.at("first_logits")) < kLogitTolerance);
  for (const TokenId expected : tokens_of(item.at("greedy_ids"))) {
    CHECK(std::max_element(logits.begin(), logits.end()) - logits.begin() == expected);
    logits = sequences.step({{s, {expected}, true}}).front();
  }
}

void check_pool(Ops& ops) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SANGAM_SOURCE_DIR "/models")) {
    if (!std::filesystem::exists(entry.path() / "golden.json")) continue;
    CAPTURE(entry.path().string());
    const ModelFolder folder = open_model(entry.path()).value();
    const auto lookup = [&](std::string_view name) { return folder.checkpoint.tensor(name); };
    auto model = Model::create(folder.config, lookup, ops).value();
    const boost::json::value golden = read_json(entry.path() / "golden.json");
    for (const boost::json::value& item : golden.at("items").as_array()) {
      check_item(*model, item.as_object());
    }
    ++models;
  }
  CHECK(models == 15);
}

TEST_CASE("every model of the pool continues its golden prompts with the golden tokens on every instruction set") {
  for_every_isa(2, check_pool);
}

}  // namespace
}  // namespace sangam::testing
