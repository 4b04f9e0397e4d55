// A merge of two shipped models from beginning to end, and broken off in the middle.
#include "actors/merger/run/merge_run.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>

#include "storage/checkpoint/safetensors_writer.hpp"
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
    for (const std::size_t kept : {outcome.trials.size() / 2, outcome.trials.size() - 1}) {
      CAPTURE(kept);
      tests::TemporaryFolder other;
      auto again = Store::open(other.path()).value();
      REQUIRE(again.put(Family::trajectory, "run", store.get(Family::trajectory, "run").value().value()));
      std::size_t seen = 0;
      REQUIRE(store.scan(Family::trajectory, "trial/", [&](std::string_view key, std::string_view value) {
        const bool is_kept = seen++ < kept;
        // A trial begins with the hash of the one before it.
        CHECK(again.put(Family::trajectory, is_kept ? key : "head", is_kept ? value : value.substr(0, 32)));
        return is_kept;
      }));
      auto resumed = Trajectory::open(again, digest_of_run(*pool, few_forms(), nullptr)).value();
      REQUIRE(resumed.size() == kept);
      const MergeOutcome end = run(*pool, resumed);
      CHECK(end.state == outcome.state);
      CHECK(end.trajectory == outcome.trajectory);
      CHECK(end.bytes == outcome.bytes);
      // Both models may be judged once more at the end, in the state that was found.
      const auto made = std::int64_t(2 * (outcome.trials.size() - kept));
      CHECK(end.evaluations <= made + 2);
      CHECK(end.evaluations < outcome.evaluations);
    }
  }
}

TEST_CASE("every form goes through forge, survey, search and judge, and its bytes are counted right") {
  const auto pool = two_models();
  MergeOptions options = few_forms();
  options.menu = {{RowCode::b8, RowCode::b1}, {std::nullopt, RowCode::b3}, {{}, {std::nullopt, 0, true}, {std::nullopt, 4}, {RowCode::b4, 4, true}}, true};
  options.search.rounds = 3;
  options.search.regroupings_max = options.search.refinements_max = 1;
  Shelf shelf(*pool, options.merging, nullptr);
  const PoolOptions surveyed = survey(shelf, options.menu, 2, {}).value();
  // Embeddings of one shape have own weights as they are, two codes, and two canonicals without any correction; other
  // slots all four corrections.
  for (const SlotGroup& group : surveyed.groups) {
    const bool is_table = pool->sites()[group.sites[0]].slot == "model.embed_tokens";
    REQUIRE(group.variants.size() == 3);
    CHECK(group.variants[0].members[0].size() == 3);
    for (const std::size_t shared : {1, 2}) CHECK(group.variants[shared].members[1].size() == (is_table ? 1u : 4u));
    // The more is added to a canonical, the less error is left, so the less harm is foreseen.
    if (!is_table) CHECK(group.variants[1].members[0][3].damage < group.variants[1].members[0][0].damage);
  }
  tests::TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  auto trajectory = Trajectory::open(store, digest_of_run(*pool, options, nullptr)).value();
  const MergeOutcome outcome = merge(shelf, options, trajectory, {}).value();
  CHECK(outcome.bytes == bytes_of(surveyed, outcome.state));
  CHECK(outcome.bytes < outcome.original);
  for (const Verdict& verdict : outcome.gate) CHECK(verdict.accepted);
}

TEST_CASE("what decides the outcome is in the name of a run") {
  const auto pool = two_models();
  const auto named = [&](const auto& change) {
    MergeOptions options = few_forms();
    change(options);
    return digest_of_run(*pool, options, nullptr);
  };
  std::set<Digest> names{named([](MergeOptions&) {}), named([](MergeOptions& o) { o.alpha = 1e-7; }), named([](MergeOptions& o) { o.alpha = 2e-7; }),
                         named([](MergeOptions& o) { o.menu.own = {RowCode::b4}; }),
                         named([](MergeOptions& o) { o.menu.own = {RowCode::b4}, o.menu.canonicals = {RowCode::b2, RowCode::b4}; }),
                         named([](MergeOptions& o) { o.search.rounds = 7; })};
  CHECK(names.size() == 6);
  const auto ancestor = Checkpoint::open(SANGAM_SOURCE_DIR "/models/B-base").value();
  CHECK(digest_of_run(*pool, few_forms(), &ancestor) != digest_of_run(*pool, few_forms(), nullptr));
}

TEST_CASE("a model that is right on no more than it may lose, or whose gate can show nothing, is refused") {
  const auto judged = [](const JudgedItems& items) {
    std::vector<PoolModel> models;
    models.push_back({ModelId("A-base"), open_model(SANGAM_SOURCE_DIR "/models/A-base").value(), items, 2.0});
    const auto pool = Pool::make(std::move(models), 1).value();
    Shelf shelf(*pool, {}, nullptr);
    return Judge(shelf, 0.05, 1).prepare().error().context;
  };
  // models/README.md: the base is right on none of the roman items.
  CHECK(judged({shipped_items("roman", 0, 20), shipped_items("roman", 20, 320), {}}).find("is right on 0.00 points") != std::string::npos);
  CHECK(judged({shipped_items("string", 0, 20), shipped_items("string", 20, 60), {}}).find("40 items for the gate") != std::string::npos);
}

TEST_CASE("a model without enough items, or with weights that are no numbers, is refused") {
  std::vector<PoolModel> models;
  models.push_back({ModelId("B-date"), open_model(SANGAM_SOURCE_DIR "/models/B-date").value(), {shipped_items("date", 0, 5), {}, {}}, 2.0});
  const auto refused = Pool::make(std::move(models), 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().context.find("B-date") != std::string::npos);

  // A norm with one value that is no number.
  tests::TemporaryFolder folder;
  const std::filesystem::path source = SANGAM_SOURCE_DIR "/models/B-date";
  for (const char* file : {"config.json", "generation_config.json"}) std::filesystem::copy_file(source / file, folder.path() / file);
  const auto original = Checkpoint::open(source).value();
  std::map<std::string, TensorView> tensors(original.tensors().begin(), original.tensors().end());
  std::vector<std::byte> broken(tensors.at("model.norm.weight").bytes.begin(), tensors.at("model.norm.weight").bytes.end());
  broken[2] = std::byte{0xc0};
  broken[3] = std::byte{0x7f};
  tensors.at("model.norm.weight").bytes = broken;
  REQUIRE(write_safetensors(folder.path() / "model.safetensors", tensors));
  std::vector<PoolModel> unsound;
  unsound.push_back({ModelId("B-date"), open_model(folder.path()).value(), {shipped_items("date", 0, 5), shipped_items("date", 5, 10), {}}, 2.0});
  CHECK(Pool::make(std::move(unsound), 1).error().context.find("model.norm.weight: a weight is no finite number") != std::string::npos);
}

}  // namespace sangam::merging
