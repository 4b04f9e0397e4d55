// A merge of two shipped models from beginning to end, and broken off in the middle.
#include "actors/merger/run/merge_run.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/unit/merger/pool_fixture.hpp"
#include "tests/unit/storage/folder.hpp"

namespace sangam::merging {
namespace {

std::unique_ptr<const Pool> two_models() {
  std::vector<PoolModel> models;
  for (const auto& [name, task] : {std::pair("B-date", "date"), std::pair("B-count", "count")}) {
    JudgedItems items{shipped_items(task, 0, 80), shipped_items(task, 80, 480), shipped_items(task, 480, 780)};
    models.push_back({ModelId(name), open_model(SANGAM_SOURCE_DIR "/models/" + std::string(name)).value(), std::move(items), 3.0});
  }
  return Pool::make(std::move(models), 2).value();
}

MergeOptions few_forms() {
  MergeOptions options;
  options.menu = {{RowCode::b4, RowCode::b2}, {RowCode::b4}, {{}, {RowCode::b2}}, false};
  options.search.rounds = 6;
  options.search.mends_max = 2;
  options.search.regroupings_max = 3;
  options.search.refinements_max = 4;
  return options;
}

MergeOutcome run(const Pool& pool, Trajectory& trajectory) {
  const MergeOptions options = few_forms();
  Shelf shelf(pool, options.merging, nullptr);
  return merge(shelf, options, trajectory, {}).value();
}

}  // namespace

TEST_CASE("a merge saves most bytes within each budget, and its bytes are those that are served") {
  const auto pool = two_models();
  tests::TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  auto trajectory = Trajectory::open(store, digest_of_run(*pool, few_forms(), nullptr)).value();
  const MergeOutcome outcome = run(*pool, trajectory);
  // Two bits everywhere are 85 % saved and four are 73 %: the search lies between them.
  const double saved = 1.0 - double(outcome.bytes.count()) / double(outcome.original.count());
  CHECK(saved > 0.70);
  CHECK(saved < 0.86);
  for (std::size_t m = 0; m < 2; ++m) {
    CHECK(outcome.gate[m].accepted);
    CHECK(outcome.gate[m].bound <= 3.0);
    CHECK(outcome.certificates[m].counts.items == 300);
    CHECK(outcome.certificates[m].counts.drop() < 3.0);
  }
  // Independently: all tensors of both models, each content once.
  Shelf shelf(*pool, few_forms().merging, nullptr);
  std::set<std::vector<std::byte>> distinct;
  std::int64_t bytes = 0;
  for (std::uint32_t m = 0; m < 2; ++m) {
    for (const auto& [name, view] : shelf.tensors(m, outcome.state).value()) {
      if (distinct.emplace(view.bytes.begin(), view.bytes.end()).second) bytes += std::int64_t(view.bytes.size());
    }
  }
  CHECK(outcome.bytes.count() == bytes);

  SUBCASE("broken off anywhere, it ends as if it had not been") {
    for (const std::size_t kept : {outcome.trials.size() / 2}) {
      CAPTURE(kept);
      tests::TemporaryFolder other;
      auto again = Store::open(other.path()).value();
      REQUIRE(again.put(Family::trajectory, "run", store.get(Family::trajectory, "run").value().value()));
      std::size_t copied = 0;
      REQUIRE(store.scan(Family::trajectory, "trial/", [&](std::string_view key, std::string_view value) {
        if (copied++ < kept) CHECK(again.put(Family::trajectory, key, value));
        return copied < kept;
      }));
      auto resumed = Trajectory::open(again, digest_of_run(*pool, few_forms(), nullptr)).value();
      REQUIRE(resumed.size() == kept);
      const MergeOutcome end = run(*pool, resumed);
      CHECK(end.state == outcome.state);
      CHECK(end.trajectory == outcome.trajectory);
      CHECK(end.bytes == outcome.bytes);
      CHECK(end.evaluations < outcome.evaluations + 3);
    }
  }
}

TEST_CASE("a model without enough items, or with weights that are no numbers, is refused") {
  std::vector<PoolModel> models;
  models.push_back({ModelId("B-date"), open_model(SANGAM_SOURCE_DIR "/models/B-date").value(), {shipped_items("date", 0, 5), {}, {}}, 2.0});
  const auto refused = Pool::make(std::move(models), 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().context.find("B-date") != std::string::npos);
}

}  // namespace sangam::merging
