// Digests against values of the xxhash package for Python (XXH3-128).
#include "storage/hash/digest.hpp"

#include <algorithm>
#include <vector>

#include "storage/hash/weights_digest.hpp"
#include "tests/unit/storage/folder.hpp"
#include "tests/unit/storage/safetensors_writer.hpp"

using namespace sangam;
using namespace sangam::tests;

TEST_CASE("a digest is XXH3-128 in its canonical order") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string large;
  for (std::int64_t i = 0; i < 100'000; ++i) large += static_cast<char>(i * i % 251);
  CHECK(hex_of(digest_of("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(hex_of(digest_of("abc")) == "06b05ab6733a618578af5f94892f3950");
  CHECK(hex_of(digest_of(all)) == "f1f8a93f50849ac39408a4433b952d71");
  CHECK(hex_of(digest_of(large)) == "eff2ce11120848664cbc1becad16bfbc");
}

TEST_CASE("the digest of a file is that of its bytes") {
  TemporaryFolder folder;
  CHECK(digest_of_file(folder.write("abc", "abc")).value() == digest_of("abc"));
  CHECK(digest_of_file(folder.write("empty", "")).value() == digest_of(""));
  CHECK(digest_of_file(folder.path() / "gone").error().code == ErrorCode::not_found);
}

TEST_CASE("hexadecimal digits name a digest, and nothing else does") {
  const std::string hex = "06b05ab6733a618578af5f94892f3950";
  CHECK(digest_from_hex(hex).value() == digest_of("abc"));
  for (const std::string& wrong : {std::string(), hex.substr(1), hex + "0", "06B" + hex.substr(3),
                                   "06g" + hex.substr(3), " " + hex.substr(1)}) {
    CHECK(digest_from_hex(wrong).error().code == ErrorCode::corrupt);
  }
}

TEST_CASE("digests order as their digits and spread over hash buckets") {
  std::vector<Digest> digests;
  for (int i = 0; i < 1000; ++i) digests.push_back(digest_of(std::to_string(i)));
  std::ranges::sort(digests);
  CHECK(std::ranges::is_sorted(digests, {}, [](const Digest& digest) { return hex_of(digest); }));
  std::vector<std::size_t> hashes;
  for (const Digest& digest : digests) hashes.push_back(std::hash<Digest>{}(digest));
  std::ranges::sort(hashes);
  CHECK(std::ranges::adjacent_find(hashes) == hashes.end());
}

TEST_CASE("the weights of a shipped model have the digest that its definition gives in Python") {
  const std::filesystem::path models = std::filesystem::path(SANGAM_SOURCE_DIR) / "models";
  CHECK(hex_of(weights_digest(Checkpoint::open(models / "A-base").value())) ==
        "fe24cc4f92dae20bf3cf8ecee9107168");
  CHECK(hex_of(weights_digest(Checkpoint::open(models / "C-fecha").value())) ==
        "acc7e235f38e466a6248767381db9fcc");
}

TEST_CASE("the digest of weights depends on names, dtypes, shapes and bytes, but not on the files") {
  const auto digest = [](const std::vector<Tensor>& tensors) {
    TemporaryFolder folder;
    folder.write("model.safetensors", shard_of(tensors));
    return weights_digest(Checkpoint::open(folder.path()).value());
  };
  const Digest original = digest({{"a", {2, 3}, 1}, {"b", {4}, 2}});
  CHECK(digest({{"b", {4}, 2}, {"a", {2, 3}, 1}}) == original);
  CHECK(digest({{"a", {2, 3}, 1}, {"c", {4}, 2}}) != original);
  CHECK(digest({{"a", {3, 2}, 1}, {"b", {4}, 2}}) != original);
  CHECK(digest({{"a", {2, 3}, 1, "F16"}, {"b", {4}, 2}}) != original);
  CHECK(digest({{"a", {2, 3}, 1}, {"b", {4}, 3}}) != original);
  CHECK(digest({{"a", {2, 3}, 1}}) != original);
  TemporaryFolder folder;
  folder.write("one", shard_of({{"b", {4}, 2}}));
  folder.write("two", shard_of({{"a", {2, 3}, 1}}));
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"two","b":"one"}})");
  CHECK(weights_digest(Checkpoint::open(folder.path()).value()) == original);
}

TEST_CASE("a digest that comes in pieces is that of the whole, for every size and cut") {
  std::string bytes((1 << 18) + 1, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * 2654435761U >> 13);
  const auto in_pieces = [&](std::size_t size, std::size_t piece) {
    DigestStream stream;
    for (std::size_t at = 0; at < size; at += piece)
      stream.update(std::as_bytes(std::span(bytes)).subspan(at, std::min(piece, size - at)));
    return stream.digest();
  };
  // XXH3 has other rules up to 16, 128 and 240 bytes, and gathers blocks of 256 and 1024.
  for (std::size_t size = 0; size <= 1100; ++size) {
    CAPTURE(size);
    const Digest whole = digest_of(std::string_view(bytes).substr(0, size));
    for (const std::size_t piece : {1, 16, 63, 64, 239, 240, 241, 256, 1024, 2000}) {
      CAPTURE(piece);
      CHECK(in_pieces(size, piece) == whole);
    }
  }
  for (const std::size_t size : {4095, 4096, 65'536, (1 << 18) - 1, 1 << 18, (1 << 18) + 1}) {
    CAPTURE(size);
    const Digest whole = digest_of(std::string_view(bytes).substr(0, size));
    for (const std::size_t piece : {1, 240, 4095, 4096, 4097, 1 << 17}) {
      CAPTURE(piece);
      CHECK(in_pieces(size, piece) == whole);
    }
  }
}

TEST_CASE("a digest may be asked for on the way, and goes on") {
  DigestStream stream;
  CHECK(hex_of(stream.digest()) == "99aa06d3014798d86001c324468d497f");  // of nothing
  stream.update(std::as_bytes(std::span("ab", 2)));
  CHECK(stream.digest() == digest_of("ab"));
  stream.update(std::as_bytes(std::span("c", 1)));
  CHECK(hex_of(stream.digest()) == "06b05ab6733a618578af5f94892f3950");
}
