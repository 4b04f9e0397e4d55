// The catalog that a worker keeps of what it loads.
#include "cli/catalog_runner.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace sangam;

namespace {

namespace fs = std::filesystem;

/// Loads anything, with the digest that it is told.
class LoadOnly final : public Runner {
 public:
  explicit LoadOnly(std::string digest, std::vector<Residency>* moves = nullptr)
      : digest_(std::move(digest)), moves_(moves) {}
  Result<void> begin(const Move& move) override {
    if (moves_ != nullptr) moves_->push_back(move.target);
    return {};
  }
  Result<bool> advance(bool) override { return true; }
  void abandon() override {}
  std::vector<Phase> phases() const override { return {}; }
  std::vector<ModelId> take_demoted() override { return {}; }
  bool would_fit(const ModelId&, std::span<const ModelId>) const override { return true; }
  Footprint footprint(const ModelId&) const override { return {}; }
  WorkerMemory memory() const override { return {}; }
  LoadedInstance instance(const ModelId&) const override { return {1.0, digest_, {}}; }
  ModelTable table(const ModelId&) const override { return {}; }
  Tokens kv_capacity(const ModelId&) const override { return Tokens(8); }
  Result<void> add(const Run&) override { return {}; }
  Result<void> add_prefill(const Run&) override { return {}; }
  std::vector<ReserveKv> take_begun() override { return {}; }
  Result<KvPlace> kv_place(const Run&) const override { return KvPlace{}; }
  void let_go(RequestId) override {}
  Result<void> reserve_kv(const ReserveKv&) override { return {}; }
  KvPulled pull_kv() override { return {}; }
  void drop_kv(RequestId) override {}
  Result<void> take_over(const HandOver&) override { return {}; }
  void cancel(RequestId) override {}
  bool has_work() const override { return false; }
  StepOutcome step() override { return {}; }
  InstanceStatus status(const ModelId&) const override { return {}; }

 private:
  std::string digest_;
  std::vector<Residency>* moves_;
};

Result<LoadedInstance> load(Runner& runner, const ModelId& model) {
  if (auto begun = runner.begin({model, Residency::active, {}}); !begun) return begun.error();
  if (auto done = runner.advance(false); !done) return done.error();
  return runner.instance(model);
}

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("sangam-catalog-" + std::to_string(getpid()));
  TemporaryFolder() { fs::create_directories(path / "model"); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

const std::string kOne(32, '1');
const std::string kTwo(32, '2');

}  // namespace

TEST_CASE("a load is entered, and one with other weights than the last time says so") {
  TemporaryFolder folder;
  std::ofstream(folder.path / "model" / "config.json") << "{}";
  std::ofstream(folder.path / "model" / "model.safetensors") << "12345";
  const ModelId model("m");
  const std::map<ModelId, fs::path> folders = {{model, folder.path / "model"}};
  auto store = Store::open(folder.path / "store");
  REQUIRE(store);

  auto first = load(*keep_catalog(std::make_unique<LoadOnly>(kOne), folders, *store), model);
  REQUIRE(first);
  CHECK(first->warnings.empty());
  const auto entry = Catalog(*store).find(model);
  REQUIRE(entry);
  REQUIRE(*entry);
  CHECK(hex_of((*entry)->weights) == kOne);
  CHECK((*entry)->bytes == Bytes(5));
  CHECK((*entry)->config == digest_of("{}"));
  CHECK((*entry)->last_loaded == (*entry)->first_seen);

  CHECK(load(*keep_catalog(std::make_unique<LoadOnly>(kOne), folders, *store), model)->warnings.empty());
  const auto other = load(*keep_catalog(std::make_unique<LoadOnly>(kTwo), folders, *store), model);
  REQUIRE(other);
  REQUIRE(other->warnings.size() == 1);
  CHECK(other->warnings[0].find(kOne) != std::string::npos);
  CHECK(Catalog(*store).find(model).value()->first_seen == (*entry)->first_seen);
}

TEST_CASE("a load that cannot be entered fails with the reason, and does not serve") {
  TemporaryFolder folder;
  const ModelId model("m");
  auto store = Store::open(folder.path / "store");
  REQUIRE(store);
  std::vector<Residency> moves;
  const auto runner = keep_catalog(std::make_unique<LoadOnly>(kOne, &moves), {{model, folder.path / "model"}}, *store);
  const auto loaded = load(*runner, model);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().context.find("config.json") != std::string::npos);
  CHECK(moves == std::vector{Residency::active, Residency::cold});
}
