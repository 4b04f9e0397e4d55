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
  explicit LoadOnly(std::string digest) : digest_(std::move(digest)) {}
  Result<LoadedInstance> load(const ModelId&) override { return LoadedInstance{1.0, digest_, {}}; }
  Tokens kv_capacity(const ModelId&) const override { return Tokens(8); }
  Result<void> add(const Run&) override { return {}; }
  void cancel(RequestId) override {}
  bool has_work() const override { return false; }
  StepOutcome step() override { return {}; }
  InstanceStatus status(const ModelId&) const override { return {}; }

 private:
  std::string digest_;
};

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

  auto first = keep_catalog(std::make_unique<LoadOnly>(kOne), folders, *store)->load(model);
  REQUIRE(first);
  CHECK(first->warnings.empty());
  const auto entry = Catalog(*store).find(model);
  REQUIRE(entry);
  REQUIRE(*entry);
  CHECK(hex_of((*entry)->weights) == kOne);
  CHECK((*entry)->bytes == Bytes(5));
  CHECK((*entry)->config == digest_of("{}"));
  CHECK((*entry)->last_loaded == (*entry)->first_seen);

  CHECK(keep_catalog(std::make_unique<LoadOnly>(kOne), folders, *store)->load(model)->warnings.empty());
  const auto other = keep_catalog(std::make_unique<LoadOnly>(kTwo), folders, *store)->load(model);
  REQUIRE(other);
  REQUIRE(other->warnings.size() == 1);
  CHECK(other->warnings[0].find(kOne) != std::string::npos);
  CHECK(Catalog(*store).find(model).value()->first_seen == (*entry)->first_seen);
}

TEST_CASE("a load that cannot be entered fails with the reason") {
  TemporaryFolder folder;
  const ModelId model("m");
  auto store = Store::open(folder.path / "store");
  REQUIRE(store);
  const auto loaded = keep_catalog(std::make_unique<LoadOnly>(kOne), {{model, folder.path / "model"}}, *store)->load(model);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().context.find("config.json") != std::string::npos);
}
