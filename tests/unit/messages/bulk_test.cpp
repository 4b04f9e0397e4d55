// Blobs from node to node: whole, in pieces, several at once, refused, cancelled, and when either side dies.
#include <doctest/doctest.h>

#include "messages/mesh/bulk_session.hpp"
#include "messages/mesh/keys.hpp"
#include "tests/unit/messages/bulk_fixture.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

/// Node "a" offers, node "b" reads.
struct Pair {
  explicit Pair(std::size_t piece = SIZE_MAX) : shelf(piece) {
    registry.add("a").add("b");
    open_a(1);
    b = open_bulk(bulk_options(patient(registry.options("b"))), ignore_logs()).value();
  }
  void open_a(std::uint64_t incarnation) {
    a = open_bulk(bulk_options(patient(registry.options("a", incarnation))), ignore_logs()).value();
    a->offer(kOwner, shelf);
  }

  Registry registry;
  NamedBytes shelf;
  std::unique_ptr<Bulk> a, b;
};

}  // namespace

TEST_CASE("a blob arrives as it is, whatever its size and in whatever pieces it lies") {
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{1 << 20}, SIZE_MAX}) {
    Pair nodes(piece);
    const std::vector<std::size_t> sizes{0, 1, 999, 1000, 1001, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5'000'000};
    auto pull = nodes.b->open(kOwner).value();
    for (const std::size_t size : sizes) {
      nodes.shelf.put(std::to_string(size), bytes_by(size, std::uint32_t(size)));
      pull->ask(BlobName(std::to_string(size)), Bytes(std::int64_t(size)));
    }
    for (const std::size_t size : sizes) {
      const auto read = read_blob(*pull);
      REQUIRE_MESSAGE(read, read.error().context);
      CHECK(*read == bytes_by(size, std::uint32_t(size)));
    }
    CHECK(nodes.b->counters().bytes_in == nodes.a->counters().bytes_out);
    CHECK(eventually([&] { return nodes.shelf.pins() == 0; }));
  }
}

TEST_CASE("the hash that the owner states comes with every part") {
  Pair nodes;
  nodes.shelf.put("x", bytes_by(3 << 20, 1));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("x"), kAnySize);
  int parts = 0;
  for (bool last = false; !last;) {
    const auto part = pull->next(Millis(100));
    REQUIRE(part);
    if (!*part) continue;
    ++parts;
    BlobHash expected{};
    expected.fill(std::uint8_t(3 << 20));
    CHECK((*part)->hash == expected);
    CHECK((*part)->size == Bytes(3 << 20));
    last = (*part)->is_last();
  }
  CHECK(parts == 3);
}

TEST_CASE("a reader that consumes nothing gets no more than its credit, and the rest as it consumes") {
  Pair nodes;
  const std::size_t size = 40 << 20;
  nodes.shelf.put("large", bytes_by(size, 7));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("large"), kAnySize);
  REQUIRE(eventually([&] {
    (void)pull->next(Millis(0)).has_value();
    return nodes.a->counters().parts_out >= 16;
  }));
  // At most what was consumed by the calls above, and the window.
  CHECK(nodes.a->counters().parts_out <= nodes.b->counters().parts_in + 16);
  CHECK(nodes.a->counters().parts_out < 40);
}

TEST_CASE("a blob that is not there ends the pull with the owner's words, and a larger one than wanted too") {
  Pair nodes;
  nodes.shelf.put("x", bytes_by(100, 1));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("y"), kAnySize);
  const Error error = last_error(*pull);
  CHECK(error.code == ErrorCode::not_found);
  CHECK(error.context.find("no y") != std::string::npos);
  auto narrow = nodes.b->open(kOwner).value();
  narrow->ask(BlobName("x"), Bytes(99));
  CHECK(last_error(*narrow).code == ErrorCode::corrupt);
  CHECK(nodes.b->open(ActorName("worker/9")).error().code == ErrorCode::not_found);
}

TEST_CASE("several readers at once each get their own") {
  Pair nodes(50'000);
  std::vector<std::unique_ptr<BlobPull>> pulls;
  for (std::uint32_t i = 0; i < 8; ++i) {
    nodes.shelf.put("blob" + std::to_string(i), bytes_by(3'000'000, i));
    pulls.push_back(nodes.b->open(kOwner).value());
    pulls.back()->ask(BlobName("blob" + std::to_string(i)), kAnySize);
  }
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(read_blob(*pulls[i]).value() == bytes_by(3'000'000, i));
}

TEST_CASE("a reader that leaves in the middle lets its blob go") {
  Pair nodes;
  nodes.shelf.put("large", bytes_by(64 << 20, 7));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("large"), kAnySize);
  REQUIRE(eventually([&] {
    (void)pull->next(Millis(0)).has_value();
    return nodes.shelf.pins() > 0;
  }));
  pull.reset();
  CHECK(eventually([&] { return nodes.shelf.pins() == 0; }));
  CHECK(eventually([&] { return nodes.a->counters().sessions_now == 0; }));
}

TEST_CASE("what is withdrawn is read no further, and nothing is asked of the shelf any more") {
  Pair nodes;
  nodes.shelf.put("large", bytes_by(64 << 20, 7));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("large"), kAnySize);
  REQUIRE(eventually([&] {
    (void)pull->next(Millis(0)).has_value();
    return nodes.shelf.pins() > 0;
  }));
  nodes.a->withdraw(kOwner);
  CHECK(eventually([&] { return nodes.shelf.pins() == 0; }));
  CHECK(last_error(*pull).code == ErrorCode::unavailable);
  auto later = nodes.b->open(kOwner).value();
  later->ask(BlobName("large"), kAnySize);
  CHECK(last_error(*later).code == ErrorCode::not_found);
}

TEST_CASE("an owner's node that dies in the middle, and one that never was, end the pull as unavailable") {
  Pair nodes;
  nodes.shelf.put("large", bytes_by(64 << 20, 7));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("large"), kAnySize);
  REQUIRE(eventually([&] {
    const auto part = pull->next(Millis(0));
    return part.has_value() && part->has_value();
  }));
  nodes.a.reset();
  CHECK(last_error(*pull).code == ErrorCode::unavailable);
  BulkOptions quick = bulk_options(nodes.registry.options("b"));
  quick.node.listen.clear();
  auto impatient = open_bulk(quick, ignore_logs()).value();
  auto nobody = impatient->open(kOwner).value();
  nobody->ask(BlobName("large"), kAnySize);
  CHECK(last_error(*nobody).code == ErrorCode::unavailable);
  CHECK(nodes.shelf.pins() == 0);
}

TEST_CASE("an owner's node that comes back under another incarnation does not go on with an old session") {
  Pair nodes;
  nodes.shelf.put("large", bytes_by(64 << 20, 7));
  auto pull = nodes.b->open(kOwner).value();
  pull->ask(BlobName("large"), kAnySize);
  REQUIRE(eventually([&] {
    const auto part = pull->next(Millis(0));
    return part.has_value() && part->has_value();
  }));
  nodes.a.reset();
  nodes.open_a(2);
  CHECK(last_error(*pull).code == ErrorCode::unavailable);
  auto next = nodes.b->open(kOwner).value();
  next->ask(BlobName("large"), kAnySize);
  CHECK(read_blob(*next).value() == bytes_by(64 << 20, 7));
}

TEST_CASE("with keys only the registry's nodes read, each under its own name") {
  Registry registry(true);
  registry.add("a").add("b").add("c");
  std::map<std::string, MeshKeys> keys;
  for (const char* node : {"a", "b", "c"}) registry.set_key(node, (keys[node] = new_mesh_keys()).public_key);
  const auto options = [&](const std::string& node, const MeshKeys& own) {
    BulkOptions made = bulk_options(patient(registry.options(node)));
    made.node.keys = own;
    return made;
  };
  NamedBytes shelf;
  shelf.put("x", bytes_by(2'000'000, 1));
  auto a = open_bulk(options("a", keys["a"]), ignore_logs()).value();
  a->offer(kOwner, shelf);
  auto b = open_bulk(options("b", keys["b"]), ignore_logs()).value();
  auto pull = b->open(kOwner).value();
  pull->ask(BlobName("x"), kAnySize);
  CHECK(read_blob(*pull).value() == bytes_by(2'000'000, 1));

  auto unknown = open_bulk(options("c", new_mesh_keys()), ignore_logs()).value();
  auto refused = unknown->open(kOwner).value();
  refused->ask(BlobName("x"), kAnySize);
  CHECK(last_error(*refused).context.find("look at the keys") != std::string::npos);
  refused.reset();
  unknown.reset();

  BulkOptions liar = options("c", keys["c"]);
  liar.node.node = NodeName("b");
  liar.node.listen.clear();
  auto pretender = open_bulk(liar, ignore_logs()).value();
  auto lying = pretender->open(kOwner).value();
  lying->ask(BlobName("x"), kAnySize);
  CHECK(last_error(*lying).context.find("the key is not this node's") != std::string::npos);
}

TEST_CASE("a session cuts blobs at their pieces and at the largest part, and sends nothing beyond its credit") {
  mesh::BulkSession session(NodeName("b"), Bytes(4), Instant{});
  const auto bytes = bytes_by(10, 3);
  const std::span<const std::byte> all = bytes;
  REQUIRE(session.ask({1, kOwner, BlobName("x")}));
  REQUIRE(session.undecided() != nullptr);
  session.begin({{all.first(6), all.subspan(6, 0), all.subspan(6)}, {}, nullptr});
  CHECK(session.undecided() == nullptr);
  CHECK(!session.can_send());
  session.credit(3);
  std::vector<std::int64_t> sizes, offsets;
  while (session.can_send()) {
    const auto part = session.next_part();
    CHECK(part.bytes.data() == bytes.data() + part.head.offset.count());
    sizes.push_back(part.head.bytes.count());
    offsets.push_back(part.head.offset.count());
  }
  CHECK(sizes == std::vector<std::int64_t>{4, 2, 4});
  CHECK(offsets == std::vector<std::int64_t>{0, 4, 6});
  CHECK(!session.can_send());
}

TEST_CASE("asks are counted without gaps, and no more wait than may") {
  mesh::BulkSession session(NodeName("b"), Bytes(4), Instant{});
  CHECK(session.ask({2, kOwner, BlobName("x")}).error().code == ErrorCode::corrupt);
  for (std::uint64_t i = 1; i <= kBlobAsksMax; ++i) REQUIRE(session.ask({i, kOwner, BlobName("x")}));
  CHECK(session.ask({kBlobAsksMax + 1, kOwner, BlobName("x")}).error().code == ErrorCode::exhausted);
  CHECK(session.refuse(make_error(ErrorCode::not_found, "no x")).number == 1);
  CHECK(session.ask({kBlobAsksMax + 1, kOwner, BlobName("x")}));
}

TEST_CASE("a reader stalls only while it has something to read") {
  mesh::BulkSession session(NodeName("b"), Bytes(4), Instant{});
  const Millis most{1000};
  CHECK(!session.is_stalled(Instant{Micros{2'000'000}}, most));
  REQUIRE(session.ask({1, kOwner, BlobName("x")}));
  CHECK(!session.is_stalled(Instant{Micros{1'000'000}}, most));
  CHECK(session.is_stalled(Instant{Micros{1'000'001}}, most));
  session.heard(Instant{Micros{1'000'001}});
  CHECK(!session.is_stalled(Instant{Micros{2'000'000}}, most));
}
