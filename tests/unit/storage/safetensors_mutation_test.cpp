// Random damage to a right file: whatever it is, it is refused or leaves a file whose tensors tile its data.
#include <algorithm>
#include <random>

#include "storage/checkpoint/shard.hpp"
#include "tests/unit/storage/folder.hpp"
#include "tests/unit/storage/safetensors_writer.hpp"

using namespace sangam;
using namespace sangam::tests;

namespace {

const std::string kOriginal = shard_of({{"model.embed_tokens.weight", {5, 4}, 1},
                                        {"model.layers.0.mlp.up_proj.weight", {3, 2}, 2, "F32", 4},
                                        {"model.norm.weight", {4}, 3}});

/// One to three edits: a flipped bit, another byte (mostly one that means something in JSON), an insertion, a
/// deletion, a repeated piece, a cut.
std::string mutated(std::mt19937_64& random) {
  constexpr std::string_view kTelling = "{}[]\",:0123456789-.eE\\ \0\xff";
  std::string file = kOriginal;
  const auto below = [&](std::size_t limit) { return limit ? random() % limit : 0; };
  for (auto edits = 1 + below(3); edits > 0; --edits) {
    const std::size_t at = below(file.size());
    const char byte = kTelling[below(kTelling.size())];
    switch (below(6)) {
      case 0: file[at] = static_cast<char>(file[at] ^ (1 << below(8))); break;
      case 1: file[at] = byte; break;
      case 2: file.insert(at, 1, byte); break;
      case 3: file.erase(at, 1 + below(8)); break;
      case 4: file.insert(at, file.substr(below(file.size()), 1 + below(40))); break;
      default: file.resize(at + 1); break;
    }
  }
  return file;
}

/// Sum over what the views cover; each must lie within the file.
std::size_t covered(const std::vector<ShardTensor>& tensors, const std::string& file) {
  std::size_t bytes = 0;
  const auto* begin = reinterpret_cast<const std::byte*>(file.data());
  for (const auto& [name, view] : tensors) {
    CHECK(view.bytes.data() >= begin);
    CHECK(view.bytes.data() + view.bytes.size() <= begin + file.size());
    std::size_t wanted = bytes_of(view.dtype);
    for (const auto dimension : view.shape) wanted *= static_cast<std::size_t>(dimension);
    CHECK(wanted == view.bytes.size());
    bytes += view.bytes.size();
  }
  return bytes;
}

}  // namespace

TEST_CASE("no damage to a file crashes the reader or lets bytes of another tensor through") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int refused = 0;
  constexpr int kRounds = 30'000;
  for (int round = 0; round < kRounds; ++round) {
    const std::string file = mutated(random);
    const auto tensors = parse_shard(std::as_bytes(std::span(file)), "file");
    refused += !tensors;
    if (!tensors) {
      REQUIRE(tensors.error().context.starts_with("file: "));
      continue;
    }
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    REQUIRE(covered(*tensors, file) == file.size() - 8 - header);
  }
  CHECK(refused > kRounds / 2);
  CHECK(refused < kRounds);  // a byte of data or of a name may change
}
