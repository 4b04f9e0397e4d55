// Checkpoints: what is read from right ones, and by which words each kind of damage is refused.
#include "storage/checkpoint/safetensors.hpp"

#include <sys/stat.h>

#include <cstring>

#include "storage/checkpoint/shard.hpp"
#include "tests/unit/storage/folder.hpp"
#include "tests/unit/storage/safetensors_writer.hpp"

using namespace sangam;
using namespace sangam::tests;

namespace {

/// Written by the safetensors library 0.8.0 for Python: a = [-1, 2] int64, b = 0..5 float32 (2, 3),
/// empty = float16 (0, 4), s = uint8 7.
const std::string kReference = shard_of(
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},"empty":{"dtype":"F16","shape":[0,4],"data_offsets":[40,40]},"s":{"dtype":"U8","shape":[],"data_offsets":[40,41]}}       )",
    {"\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\0\0\0"
     "\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@\x07",
     41});

template <class T>
std::vector<T> values_of(const TensorView& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

/// The error with which a folder whose only file is `model.safetensors` is refused.
Error refusal_of(std::string_view file) {
  TemporaryFolder folder;
  folder.write("model.safetensors", file);
  const auto checkpoint = Checkpoint::open(folder.path());
  REQUIRE_FALSE(checkpoint);
  CHECK(has(checkpoint.error().context, (folder.path() / "model.safetensors").string()));
  return checkpoint.error();
}

void check_refused(std::string_view file, ErrorCode code, std::initializer_list<const char*> words) {
  const Error error = refusal_of(file);
  CAPTURE(error.context);
  CHECK(error.code == code);
  for (const char* word : words) CHECK_MESSAGE(has(error.context, word), std::string(word));
}

std::string index_of(std::string_view entries) {
  return "{\"weight_map\":{" + std::string(entries) + "}}";
}

}  // namespace

TEST_CASE("a file of the safetensors library is read as it was written") {
  TemporaryFolder folder;
  folder.write("model.safetensors", kReference);
  const auto checkpoint = Checkpoint::open(folder.path()).value();
  CHECK(checkpoint.names() == std::vector<std::string>{"a", "b", "empty", "s"});
  CHECK(checkpoint.bytes() == Bytes(41));
  const auto a = checkpoint.tensor("a").value();
  CHECK(a.dtype == DType::i64);
  CHECK(values_of<std::int64_t>(a) == std::vector<std::int64_t>{-1, 2});
  const auto b = checkpoint.tensor("b").value();
  CHECK(b.dtype == DType::f32);
  CHECK(b.shape == std::vector<std::int64_t>{2, 3});
  CHECK(values_of<float>(b) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(checkpoint.tensor("empty").value().shape == std::vector<std::int64_t>{0, 4});
  CHECK(checkpoint.tensor("empty").value().bytes.empty());
  CHECK(checkpoint.tensor("s").value().shape.empty());
  CHECK(values_of<std::uint8_t>(checkpoint.tensor("s").value()) == std::vector<std::uint8_t>{7});
  const auto absent = checkpoint.tensor("c");
  CHECK(absent.error().code == ErrorCode::not_found);
  CHECK(has(absent.error().context, "'c'"));
}

TEST_CASE("views stay valid when the checkpoint moves") {
  TemporaryFolder folder;
  folder.write("model.safetensors", kReference);
  auto first = Checkpoint::open(folder.path()).value();
  const auto view = first.tensor("b").value();
  const Checkpoint second = std::move(first);
  CHECK(values_of<float>(view)[5] == 5.0f);
  CHECK(second.tensor("b").value().bytes.data() == view.bytes.data());
}

TEST_CASE("a cut, extended or empty file is refused with its sizes") {
  check_refused("", ErrorCode::corrupt, {"is empty"});
  check_refused("\1\2\3", ErrorCode::corrupt, {"3 bytes", "takes 8"});
  check_refused(kReference.substr(0, 100), ErrorCode::corrupt,
                {"inside its header", "264 bytes stated, 92 there"});
  check_refused(kReference.substr(0, kReference.size() - 1), ErrorCode::corrupt,
                {"tensor 's' at [40, 41)", "beyond the 40 data bytes"});
  check_refused(kReference + "x", ErrorCode::corrupt, {"1 trailing bytes", "ends at 41 of 42"});
}

TEST_CASE("every strict prefix of a file is refused") {
  for (std::size_t size = 0; size < kReference.size(); ++size) {
    const std::string file = kReference.substr(0, size);
    CAPTURE(size);
    CHECK_FALSE(parse_shard(std::as_bytes(std::span(file)), "file"));
  }
}

TEST_CASE("what is no safetensors file is called by its name") {
  check_refused("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4973\n",
                ErrorCode::corrupt, {"Git LFS pointer", "git lfs pull"});
  check_refused("<!DOCTYPE html><html>not found</html>", ErrorCode::corrupt, {"limit 100000000"});
  check_refused(shard_of("[1]", ""), ErrorCode::corrupt, {"does not begin with '{'"});
  check_refused(shard_of(" {}", ""), ErrorCode::corrupt, {"does not begin with '{'"});
  check_refused(shard_of("", ""), ErrorCode::corrupt, {"does not begin with '{'"});
  check_refused(shard_of("{} {}", ""), ErrorCode::corrupt, {"not valid JSON"});
  check_refused(shard_of("{\"a\":", ""), ErrorCode::corrupt, {"not valid JSON"});
  check_refused(shard_of("{\"\xff\":{}}", ""), ErrorCode::corrupt, {"not valid JSON"});
}

TEST_CASE("a header of just the limit is allowed and one byte more is not") {
  std::string file(8 + kHeaderBytesMax, ' ');
  file.replace(0, 10, std::string("\x00\xe1\xf5\x05\0\0\0\0{}", 10));  // 100,000,000
  CHECK(parse_shard(std::as_bytes(std::span(file)), "file").value().empty());
  file += ' ';
  ++file[0];
  const auto refused = parse_shard(std::as_bytes(std::span(file)), "file");
  CHECK(has(refused.error().context, "header of 100000001 bytes (limit 100000000)"));
}

TEST_CASE("an unknown dtype is refused by name, with those that can be read") {
  check_refused(shard_of(R"({"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", "1234"),
                ErrorCode::invalid_input, {"tensor 'w'", "'F8_E4M3'", "BF16", "convert"});
}

TEST_CASE("shape and dtype must give the size of the bytes") {
  check_refused(shard_of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
                ErrorCode::corrupt, {"tensor 'w'", "has 4 bytes", "[2] takes 8"});
  check_refused(shard_of(R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""),
                ErrorCode::corrupt, {"[4294967296, 4294967296]", "more than 2^63"});
  check_refused(shard_of(R"({"w":{"dtype":"U8","shape":[-1,-4],"data_offsets":[0,4]}})", "1234"),
                ErrorCode::corrupt, {"'w'", "negative", "-1"});
  check_refused(shard_of(R"({"w":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", "1234"),
                ErrorCode::corrupt, {"'w'", "no integer"});
  check_refused(
      shard_of(R"({"w":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})", "1234"),
      ErrorCode::corrupt, {"'w'", "2^63"});
  check_refused(shard_of(R"({"w":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "1"),
                ErrorCode::corrupt, {"'w'", "more than 8"});
}

TEST_CASE("offsets that overlap, leave holes, run backwards or leave the file are refused by tensor") {
  const auto two = [](const char* first, const char* second) {
    return shard_of(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + first +
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                    "12345678");
  };
  const std::string swapped = two("[4,8]", "[0,4]");
  CHECK(parse_shard(std::as_bytes(std::span(swapped)), "file"));
  check_refused(two("[0,4]", "[3,7]"), ErrorCode::corrupt, {"tensor 'b' begins at byte 3", "ends at 4"});
  check_refused(two("[0,4]", "[0,4]"), ErrorCode::corrupt, {"tensor 'b' begins at byte 0", "ends at 4"});
  check_refused(two("[1,5]", "[5,9]"), ErrorCode::corrupt, {"tensor 'b'", "beyond the 8 data bytes"});
  check_refused(two("[1,5]", "[4,8]"), ErrorCode::corrupt, {"hole of 1 bytes before tensor 'a'"});
  check_refused(two("[4,0]", "[4,8]"), ErrorCode::corrupt, {"tensor 'a' at [4, 0)", "ends before it begins"});
  check_refused(two("[0,4]", "[9223372036854775803,9223372036854775807]"), ErrorCode::corrupt,
                {"'b'", "beyond"});
  check_refused(two("[0,4,8]", "[4,8]"), ErrorCode::corrupt, {"'a'", "two data_offsets"});
  check_refused(two("4", "[4,8]"), ErrorCode::corrupt, {"'a'", "number where none may be"});
}

TEST_CASE("names and fields that are there twice are refused, not folded") {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  check_refused(shard_of("{" + a + "," + a + "}", "1234"), ErrorCode::corrupt, {"tensor 'a' is there twice"});
  check_refused(shard_of(R"({"a":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}})", "1234"),
                ErrorCode::corrupt, {"'a'", "once each"});
  check_refused(shard_of(R"({"a":{"dtype":"U8","shape":[4]}})", "1234"), ErrorCode::corrupt,
                {"'a'", "once each"});
  check_refused(shard_of(R"({"__metadata__":{},"__metadata__":{}})", ""), ErrorCode::corrupt, {"twice"});
}

TEST_CASE("a header whose parts are of another kind is refused") {
  for (const char* header :
       {R"({"a":1})", R"({"a":null})", R"({"a":"x"})", R"({"a":[1]})", R"({"a":true})",
        R"({"a":{"dtype":{},"shape":[],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":{"a":["b"]}})", R"({"__metadata__":{"a":{}}})"})
    check_refused(shard_of(header, ""), ErrorCode::corrupt, {"header byte"});
}

TEST_CASE("a folder without a checkpoint is refused with what is there") {
  TemporaryFolder folder;
  CHECK(Checkpoint::open(folder.path() / "gone").error().code == ErrorCode::not_found);
  CHECK(has(Checkpoint::open(folder.path() / "gone").error().context, "no such folder"));
  const auto file = folder.write("pytorch_model.bin", "x");
  CHECK(Checkpoint::open(file).error().code == ErrorCode::invalid_input);
  const auto refused = Checkpoint::open(folder.path());
  CHECK(refused.error().code == ErrorCode::not_found);
  CHECK(has(refused.error().context, "model.safetensors.index.json"));
  CHECK(has(refused.error().context, "pytorch_model.bin is: convert"));
}

TEST_CASE("a folder, a pipe or a dangling link in place of the weights is refused at once") {
  TemporaryFolder folder;
  const auto weights = folder.path() / "model.safetensors";
  const auto refusal = [&] {
    const auto refused = Checkpoint::open(folder.path());
    std::filesystem::remove(weights);
    return refused.error();
  };
  std::filesystem::create_directory(weights);
  CHECK(has(refusal().context, "not a regular file"));
  REQUIRE(::mkfifo(weights.c_str(), 0600) == 0);
  CHECK(has(refusal().context, "not a regular file"));
  std::filesystem::create_symlink("../blobs/gone", weights);
  CHECK(refusal().code == ErrorCode::not_found);
}

TEST_CASE("a link to the weights is followed, as the cache of HF needs") {
  TemporaryFolder folder;
  folder.write("blob", kReference);
  std::filesystem::create_symlink("blob", folder.path() / "model.safetensors");
  CHECK(Checkpoint::open(folder.path()).value().contains("b"));
}

TEST_CASE("shards are joined by their index") {
  TemporaryFolder folder;
  folder.write("one.safetensors", shard_of({{"a", {2}, 1}}));
  folder.write("two.safetensors", shard_of({{"b", {3}, 2}, {"c", {1}, 3}}));
  folder.write(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":12},)" +
          index_of(R"("a":"one.safetensors","b":"two.safetensors","c":"two.safetensors")").substr(1));
  const auto checkpoint = Checkpoint::open(folder.path()).value();
  CHECK(checkpoint.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(checkpoint.bytes() == Bytes(12));
  CHECK(values_of<std::uint8_t>(checkpoint.tensor("b").value()) == std::vector<std::uint8_t>(6, 2));
}

TEST_CASE("an index that disagrees with its shards is refused by tensor and shard") {
  const auto refusal = [](std::string_view entries) {
    TemporaryFolder folder;
    folder.write("one", shard_of({{"a", {2}, 1}}));
    folder.write("two", shard_of({{"b", {3}, 2}}));
    folder.write("again", shard_of({{"a", {2}, 1}, {"d", {1}, 1}}));
    folder.write("cut", shard_of({{"e", {3}, 2}}).substr(0, 60));
    folder.write("model.safetensors.index.json", index_of(entries));
    return Checkpoint::open(folder.path()).error();
  };
  CHECK(has(refusal(R"("a":"one","b":"three")").context, "shard 'three' is named there, but missing"));
  CHECK(refusal(R"("a":"one","b":"three")").code == ErrorCode::not_found);
  CHECK(has(refusal(R"("a":"one","b":"two","c":"two")").context, "two: lacks tensor 'c'"));
  CHECK(has(refusal(R"("a":"one","d":"two")").context, "two: holds tensor 'b'"));
  CHECK(has(refusal(R"("a":"two","b":"one")").context, "one: holds tensor 'a', which"));
  CHECK(has(refusal(R"("a":"one","d":"again")").context, "holds tensor 'a', which"));
  CHECK(has(refusal(R"("a":"again","d":"again","b":"one")").context, "tensor 'a' is also in another shard"));
  CHECK(has(refusal(R"("e":"cut")").context, "cut: "));
  CHECK(has(refusal("").context, "weight_map"));
  CHECK(has(refusal(R"("a":)").context, "not valid JSON"));
}

TEST_CASE("an index cannot name files outside of its folder") {
  for (const char* name : {"../one", "/etc/passwd", "sub/one", "..", ".", "", "one\\u0000"}) {
    TemporaryFolder folder;
    folder.write("one", shard_of({{"a", {2}, 1}}));
    folder.write("model.safetensors.index.json", index_of(std::string("\"a\":\"") + name + "\""));
    const auto refused = Checkpoint::open(folder.path());
    CAPTURE(name);
    CHECK(refused.error().code == ErrorCode::invalid_input);
    CHECK(has(refused.error().context, "not the name of a file in this folder"));
  }
}
