// The store within one process: reading what was written, batches, scans, and the folders that it refuses.
#include "storage/store/store.hpp"

#include <rocksdb/db.h>

#include <array>
#include <atomic>
#include <thread>

#include "storage/store/catalog.hpp"
#include "storage/store/incarnation.hpp"
#include "tests/unit/storage/folder.hpp"

using namespace sangam;
using namespace sangam::tests;

namespace {

std::vector<std::string> keys_of(const Store& store, Family family, std::string_view prefix) {
  std::vector<std::string> keys;
  REQUIRE(store.scan(family, prefix, [&](std::string_view key, std::string_view) {
    keys.emplace_back(key);
    return true;
  }));
  return keys;
}

/// The only file of the folder whose name begins or ends so.
std::filesystem::path file_of(const std::filesystem::path& folder, std::string_view prefix,
                              std::string_view suffix) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix) && name.ends_with(suffix)) return entry.path();
  }
  FAIL("no such file in " << folder.string());
  return {};
}

void flip_byte(const std::filesystem::path& path, std::size_t at) {
  std::string content = content_of(path);
  REQUIRE(at < content.size());
  content[at] = static_cast<char>(content[at] ^ 0x55);
  std::ofstream(path, std::ios::binary).write(content.data(), std::streamsize(content.size()));
}

}  // namespace

TEST_CASE("what was put is there after reopening, and what was erased is not") {
  TemporaryFolder folder;
  const auto path = folder.path() / "deep" / "state";
  const std::string binary("\0\xff\n", 3);
  {
    auto store = Store::open(path).value();
    CHECK(store.put(Family::meta, "a", "1"));
    CHECK(store.put(Family::meta, "a", "2"));
    CHECK(store.put(Family::meta, binary, binary));
    CHECK(store.put(Family::meta, "gone", "x"));
    CHECK(store.erase(Family::meta, "gone"));
    CHECK(store.erase(Family::meta, "never there"));
  }
  const auto store = Store::open(path).value();
  CHECK(store.get(Family::meta, "a").value() == "2");
  CHECK(store.get(Family::meta, binary).value() == binary);
  CHECK_FALSE(store.get(Family::meta, "gone").value().has_value());
  CHECK_FALSE(store.get(Family::catalog, "a").value().has_value());
}

TEST_CASE("a batch takes effect in order and across families") {
  TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  CHECK(store.commit(Batch()
                         .put(Family::meta, "a", "1")
                         .put(Family::catalog, "a", "2")
                         .put(Family::meta, "b", "3")
                         .erase(Family::meta, "b")));
  CHECK(store.get(Family::meta, "a").value() == "1");
  CHECK(store.get(Family::catalog, "a").value() == "2");
  CHECK_FALSE(store.get(Family::meta, "b").value().has_value());
}

TEST_CASE("a scan visits just the keys with the prefix, in order, until it is told to stop") {
  TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  for (const char* key : {"b/2", "b/1", "a", "b", "c", "b/10", "b0"})
    CHECK(store.put(Family::catalog, key, key));
  CHECK(keys_of(store, Family::catalog, "b/") == std::vector<std::string>{"b/1", "b/10", "b/2"});
  CHECK(keys_of(store, Family::catalog, "x").empty());
  CHECK(keys_of(store, Family::catalog, "").size() == 7);
  int visited = 0;
  CHECK(store.scan(Family::catalog, "b", [&](auto, auto) { return ++visited < 2; }));
  CHECK(visited == 2);
}

TEST_CASE("a second opening is refused as held, with the path, until the first one closes") {
  TemporaryFolder folder;
  {
    const auto first = Store::open(folder.path()).value();
    const auto second = Store::open(folder.path());
    CHECK(second.error().code == ErrorCode::unavailable);
    CHECK(has(second.error().context, folder.path().string()));
    CHECK(has(second.error().context, "another process has it open"));
  }
  CHECK(Store::open(folder.path()));
}

TEST_CASE("a file, or a path through a file, is refused as no folder") {
  TemporaryFolder folder;
  const auto file = folder.write("file", "x");
  CHECK(Store::open(file).error().code == ErrorCode::invalid_input);
  CHECK(has(Store::open(file).error().context, "not a folder"));
  CHECK(Store::open(file / "state").error().code == ErrorCode::invalid_input);
}

TEST_CASE("a store without its CURRENT file is refused and not begun anew") {
  TemporaryFolder folder;
  CHECK(Store::open(folder.path()).value().put(Family::meta, "a", "1"));
  std::filesystem::remove(folder.path() / "CURRENT");
  const auto refused = Store::open(folder.path());
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(has(refused.error().context, "no CURRENT file"));
}

TEST_CASE("a damaged manifest is refused as corrupt") {
  TemporaryFolder folder;
  CHECK(Store::open(folder.path()).value().put(Family::meta, "a", "1"));
  flip_byte(file_of(folder.path(), "MANIFEST", ""), 20);
  const auto refused = Store::open(folder.path());
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(has(refused.error().context, "backup"));
}

TEST_CASE("damage before the end of the log is refused and not skipped over") {
  TemporaryFolder folder;
  {
    auto store = Store::open(folder.path()).value();
    for (int i = 0; i < 20; ++i)
      CHECK(store.put(Family::meta, "key" + std::to_string(i), std::string(100, 'x')));
  }
  const auto log = file_of(folder.path(), "", ".log");
  flip_byte(log, content_of(log).find("key5"));
  CHECK(Store::open(folder.path()).error().code == ErrorCode::corrupt);
}

TEST_CASE("a log that is torn at its end loses only what was not complete") {
  TemporaryFolder folder;
  {
    auto store = Store::open(folder.path()).value();
    for (int i = 0; i < 20; ++i)
      CHECK(store.put(Family::meta, "key" + std::to_string(i), std::string(100, 'x')));
  }
  const auto log = file_of(folder.path(), "", ".log");
  std::filesystem::resize_file(log, content_of(log).rfind("key19") + 10);
  const auto store = Store::open(folder.path()).value();
  CHECK(keys_of(store, Family::meta, "key").size() == 19);
  CHECK_FALSE(store.get(Family::meta, "key19").value().has_value());
}

TEST_CASE("a store of a later format or with a family of a later version is refused by name") {
  TemporaryFolder format;
  CHECK(Store::open(format.path()).value().put(Family::meta, "format", "2"));
  CHECK(Store::open(format.path()).error().code == ErrorCode::corrupt);
  CHECK(has(Store::open(format.path()).error().context, "format '2', and this version knows '1'"));

  TemporaryFolder family;
  CHECK(Store::open(family.path()));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  REQUIRE(rocksdb::DB::Open({}, family.path().string(), {{"default", {}}, {"meta", {}}, {"catalog", {}}, {"trajectory", {}}},
                            &handles, &db)
              .ok());
  rocksdb::ColumnFamilyHandle* later = nullptr;
  REQUIRE(db->CreateColumnFamily({}, "trajectories", &later).ok());
  handles.push_back(later);
  for (auto* handle : handles) REQUIRE(db->DestroyColumnFamilyHandle(handle).ok());
  delete db;
  CHECK(Store::open(family.path()).error().code == ErrorCode::corrupt);
  CHECK(has(Store::open(family.path()).error().context, "family 'trajectories' of a later version"));
}

TEST_CASE("incarnations rise from one, for each name apart, across openings") {
  TemporaryFolder folder;
  for (std::uint64_t start = 1; start <= 3; ++start) {
    auto store = Store::open(folder.path()).value();
    CHECK(next_incarnation(store, "gateway/1").value() == Incarnation(start));
  }
  auto store = Store::open(folder.path()).value();
  CHECK(next_incarnation(store, "gateway/2").value() == Incarnation(1));
  CHECK(next_incarnation(store, "gateway/1").value() == Incarnation(4));
}

TEST_CASE("no two threads get one incarnation") {
  TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  std::array<std::atomic<int>, 41> times{};
  const auto take = [&] {
    for (int i = 0; i < 10; ++i) ++times[std::uint64_t(next_incarnation(store, "worker/1").value())];
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(take);
  for (auto& thread : threads) thread.join();
  for (std::size_t incarnation = 1; incarnation <= 40; ++incarnation) CHECK(times[incarnation] == 1);
}

TEST_CASE("a counter that holds no number is refused as corrupt") {
  TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  for (const char* wrong : {"", "x", "-1", "1 ", "18446744073709551615", "99999999999999999999"}) {
    CHECK(store.put(Family::meta, "incarnation/a", wrong));
    CHECK(next_incarnation(store, "a").error().code == ErrorCode::corrupt);
    CHECK(has(next_incarnation(store, "a").error().context, "'incarnation/a' holds '"));
  }
}

namespace {

const CatalogEntry kEntry = {.folder = "models/A-arith",
                             .weights = digest_of("weights"),
                             .config = digest_of("config"),
                             .bytes = Bytes(2'429'952),
                             .first_seen = UnixTime(std::chrono::milliseconds(1'700'000'000'123)),
                             .last_loaded = std::nullopt};

}  // namespace

TEST_CASE("the catalog keeps its entries across openings") {
  TemporaryFolder folder;
  const ModelId arith("A-arith");
  const ModelId slashed("org/some \"model\"\n");
  const UnixTime loaded(std::chrono::milliseconds(1'700'000'555'000));
  CatalogEntry other = kEntry;
  other.folder = "models/with \xc3\xa4 and \\";
  CatalogEntry expected = kEntry;
  expected.last_loaded = loaded;
  {
    auto store = Store::open(folder.path()).value();
    Catalog catalog(store);
    CHECK_FALSE(catalog.find(arith).value().has_value());
    CHECK(catalog.put(arith, kEntry));
    CHECK(catalog.put(slashed, other));
    CHECK(catalog.put(ModelId("gone"), other));
    CHECK(catalog.erase(ModelId("gone")));
    CHECK(catalog.put(arith, expected));
  }
  auto store = Store::open(folder.path()).value();
  const Catalog catalog(store);
  CHECK((catalog.find(arith).value() == expected));
  CHECK((catalog.find(slashed).value() == other));
  CHECK((catalog.all().value() == std::map<ModelId, CatalogEntry>{{arith, expected}, {slashed, other}}));
}

TEST_CASE("a catalog entry that is damaged or of a later version is refused by model") {
  TemporaryFolder folder;
  auto store = Store::open(folder.path()).value();
  Catalog catalog(store);
  const ModelId model("A-arith");
  CHECK(catalog.put(model, kEntry));
  const std::string right = store.get(Family::catalog, "A-arith").value().value();
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string wrong = right;
    REQUIRE(wrong.find(from) != std::string::npos);
    wrong.replace(wrong.find(from), from.size(), to);
    CHECK(store.put(Family::catalog, "A-arith", wrong));
    CHECK(catalog.all().error().context == catalog.find(model).error().context);
    CHECK(catalog.find(model).error().code == ErrorCode::corrupt);
    CHECK(has(catalog.find(model).error().context, "catalog entry of model 'A-arith'"));
    return catalog.find(model).error().context;
  };
  CHECK(has(refusal("\"version\":1", "\"version\":2"), "version = 2"));
  CHECK(has(refusal("\"version\":1,", ""), "version"));
  CHECK(has(refusal(hex_of(kEntry.weights), "abc"), "weights_digest"));
  CHECK(has(refusal("2429952", "-1"), "weight_bytes = -1"));
  CHECK(has(refusal("{", "["), "not valid JSON"));
}
