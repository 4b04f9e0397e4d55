// Sizes by hand: the smallest that is enough, and what the other policies make of the same model.
#include "actors/autoscaler/sizing.hpp"

#include <doctest/doctest.h>

namespace sangam {
namespace {

ModelForecast forecast(std::vector<double> prefill, std::vector<double> decode) {
  ModelForecast f;
  f.mixed_attainment = {0.0};  // Mixed workers never suffice.
  f.prefill_attainment = std::move(prefill);
  f.decode_attainment = std::move(decode);
  return f;
}

TEST_CASE("elasticity takes the smallest number whose bound meets the target, each kind by itself") {
  const ModelForecast f = forecast({0.2, 0.9, 0.985, 0.995, 1.0}, {0.99, 1.0});
  CHECK(elasticity({f, 0, {}}, {}) == Need{4, 1});
  SizingOptions lax;
  lax.attainment = 0.9;
  CHECK(elasticity({f, 0, {}}, lax) == Need{2, 1});
  lax.instances_max = 1;
  CHECK(elasticity({f, 0, {}}, lax) == Need{1, 1});
}

TEST_CASE("mixed workers are taken where they suffice and need be no more than the others together") {
  ModelForecast f = forecast({0.9, 0.999}, {1.0});
  f.mixed_attainment = {0.8, 0.95, 0.995};
  CHECK(elasticity({f, 0, {}}, {}) == Need{0, 0, 3});  // Two and one are three as well.
  f.mixed_attainment = {0.8, 0.9, 0.95, 0.995};
  CHECK(elasticity({f, 0, {}}, {}) == Need{2, 1, 0});
  f.mixed_attainment = {0.995};
  CHECK(elasticity({f, 0, {}}, {}) == Need{0, 0, 1});
}

TEST_CASE("who is divided becomes mixed only where that saves a quarter of the workers") {
  ModelForecast f = forecast({0.9, 0.9, 1.0}, {1.0});  // Three and one.
  f.mixed_attainment = {0.9, 0.9, 0.9, 1.0};
  CHECK(elasticity({f, 0, {}}, {}) == Need{0, 0, 4});
  CHECK(elasticity({f, 0, {3, 1}}, {}) == Need{3, 1, 0});
  f.mixed_attainment = {0.9, 0.9, 1.0};
  CHECK(elasticity({f, 0, {3, 1}}, {}) == Need{0, 0, 3});
}

TEST_CASE("a model that bursts has one worker to spare for its prompts") {
  ModelForecast f = forecast({1.0}, {1.0});
  f.requests_per_second = 2.0;
  f.volatility = 3.9;
  CHECK(elasticity({f, 0, {}}, {}) == Need{1, 1, 0});
  f.volatility = 4.0;
  CHECK(elasticity({f, 0, {}}, {}) == Need{2, 1, 0});
  f.mixed_attainment = {1.0};
  CHECK(elasticity({f, 0, {}}, {}) == Need{0, 0, 2});
  f.requests_per_second = 1.9;
  CHECK(elasticity({f, 0, {}}, {}) == Need{0, 0, 1});
}

TEST_CASE("a queue that grows adds workers to those that there are, one for each eight that wait") {
  ModelForecast f = forecast({1.0}, {1.0});
  CHECK(elasticity({f, 7, {3, 1}, 7}, {}) == Need{1, 1, 0});
  CHECK(elasticity({f, 17, {3, 1}, 17}, {}) == Need{5, 1, 0});
  f.mixed_attainment = {1.0};
  CHECK(elasticity({f, 8, {0, 0, 2}, 8}, {}) == Need{0, 0, 3});
  CHECK(elasticity({f, 8'000, {0, 0, 2}, 8'000}, {}) == Need{0, 0, 64});
  SizingOptions none;
  none.instances_max = 0;  // Whoever forbids workers gets none, whatever bursts or waits.
  f.volatility = 10.0;
  f.requests_per_second = 10.0;
  CHECK(elasticity({f, 8'000, {}, 8'000}, none) == Need{});
}

TEST_CASE("where no number reaches the target, more than what comes next to the best is not asked for") {
  const ModelForecast f = forecast({0.1, 0.5, 0.8995, 0.9, 0.9}, {});
  CHECK(elasticity({f, 0, {}}, {}) == Need{3, 1});  // Within a thousandth of 0.9; no forecast: one to learn.
}

TEST_CASE("reactive keeps within its band and steps out of it by the token rate") {
  ModelForecast f;
  f.input_tokens_per_second = 3 * 4096.0 * 0.7;
  CHECK(reactive({f, 0, {3, 1}}, {}) == Need{3, 1});
  f.input_tokens_per_second = 3 * 4096.0 * 0.9;  // 2.7 workers of work, 0.8 each: 3.375.
  CHECK(reactive({f, 0, {3, 1}}, {}) == Need{4, 1});
  f.input_tokens_per_second = 100 * 4096.0;
  CHECK(reactive({f, 0, {3, 1}}, {}).prefill == 8);
  f.input_tokens_per_second = 0.0;
  CHECK(reactive({f, 0, {3, 1}}, {}) == Need{1, 1});
}

TEST_CASE("per_app counts requests under way, eight a worker") {
  const ModelForecast f;
  CHECK(per_app({f, 0, {}}, {}) == Need{1, 1});
  CHECK(per_app({f, 8, {}}, {}) == Need{1, 1});
  CHECK(per_app({f, 9, {}}, {}) == Need{2, 1});
  CHECK(per_app({f, 1000, {}}, {}) == Need{8, 1});
}

TEST_CASE("policies are found by name, and an unknown name says which there are") {
  CHECK((sizing_policy("reactive").value() == reactive));
  CHECK((sizing_policy("none").value() == unchanged));
  const auto unknown = sizing_policy("magic");
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().code == ErrorCode::invalid_input);
  CHECK(unknown.error().context.find("elasticity_gp, reactive, per_app, none") != std::string::npos);
}

}  // namespace
}  // namespace sangam
