// What is written is what the reader, and the format's definition, find again.
#include "storage/checkpoint/safetensors_writer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "storage/checkpoint/safetensors.hpp"
#include "tests/unit/storage/folder.hpp"

namespace sangam {
namespace {

std::vector<std::byte> bytes_of_text(std::string_view text) {
  std::vector<std::byte> out;
  for (const char c : text) out.push_back(std::byte(c));
  return out;
}

}  // namespace

TEST_CASE("a written checkpoint is read again, tensor by tensor") {
  tests::TemporaryFolder folder;
  const auto weights = bytes_of_text("abcdefghijkl");
  const auto codes = bytes_of_text("xyz");
  REQUIRE(write_safetensors(folder.path() / "model.safetensors", {{"b.weight", {DType::bf16, {2, 3}, weights}}, {"a.weight.b4", {DType::u8, {1, 3}, codes}}}));
  const auto read = Checkpoint::open(folder.path());
  REQUIRE(read.has_value());
  CHECK(read->names() == std::vector<std::string>{"a.weight.b4", "b.weight"});
  CHECK(read->tensor("b.weight")->shape == std::vector<std::int64_t>{2, 3});
  CHECK(std::ranges::equal(read->tensor("b.weight")->bytes, weights));
  CHECK(std::ranges::equal(read->tensor("a.weight.b4")->bytes, codes));
  CHECK(read->tensor("a.weight.b4")->dtype == DType::u8);
}

TEST_CASE("the bytes are those of the format") {
  tests::TemporaryFolder folder;
  const auto one = bytes_of_text("12");
  REQUIRE(write_safetensors(folder.path() / "m", {{"w", {DType::f16, {1}, one}}}));
  std::ifstream file(folder.path() / "m", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string header = R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  CHECK(text == std::string(1, char(header.size())) + std::string(7, '\0') + header + "12");
}

TEST_CASE("what cannot be written says where, and leaves nothing") {
  tests::TemporaryFolder folder;
  const auto refused = write_safetensors(folder.path() / "no" / "model.safetensors", {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().context.find("no/model.safetensors: cannot be written") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace sangam
