// The encoding that weights_digest hashes.
#include "storage/hash/weights_digest.hpp"

namespace sangam {
namespace {

void append_integer(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

void append_text(std::string& out, std::string_view text) {
  append_integer(out, text.size());
  out += text;
}

}  // namespace

Digest weights_digest(const Checkpoint& checkpoint) {
  std::map<std::string, Digest, std::less<>> of_tensors;
  for (const auto& [name, tensor] : checkpoint.tensors()) of_tensors.emplace(name, digest_of(tensor.bytes));
  return weights_digest(checkpoint, of_tensors);
}

Digest weights_digest(const Checkpoint& checkpoint, const std::map<std::string, Digest, std::less<>>& of_tensors) {
  std::string encoded;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    append_text(encoded, name);
    append_text(encoded, name_of(tensor.dtype));
    append_integer(encoded, tensor.shape.size());
    for (const std::int64_t dimension : tensor.shape)
      append_integer(encoded, static_cast<std::uint64_t>(dimension));
    const Digest& digest = of_tensors.at(name);
    encoded.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  }
  return digest_of(encoded);
}

}  // namespace sangam
