// Hashing a checkpoint tensor by tensor.
#include "gpu/residency/folder_reading.hpp"

#include "storage/checkpoint/tensor_check.hpp"
#include "storage/hash/weights_digest.hpp"

namespace sangam {

Bytes Blueprint::bytes() const {
  Bytes sum;
  for (const WantedSlot& slot : slots) sum += slot.bytes;
  return sum;
}

Result<FolderReading> FolderReading::open(const std::filesystem::path& folder) {
  auto opened = open_model(folder);
  if (!opened) return opened.error();
  return FolderReading(std::move(*opened));
}

bool FolderReading::advance(Bytes most) {
  const auto& tensors = opened_.checkpoint.tensors();
  Bytes piece;
  // In the order of the names: what is done comes before what is not.
  auto next = digests_.empty() ? tensors.begin() : tensors.upper_bound(digests_.rbegin()->first);
  for (; next != tensors.end() && piece < most; ++next) {
    digests_.emplace(next->first, digest_of(next->second.bytes));
    piece += Bytes(std::int64_t(next->second.bytes.size()));
  }
  read_ += piece;
  return next == tensors.end();
}

Result<Blueprint> FolderReading::blueprint() const {
  auto config_digest = digest_of_file(opened_.checkpoint.folder() / "config.json");
  if (!config_digest) return config_digest.error();
  Blueprint blueprint;
  blueprint.config = opened_.config;
  blueprint.weights_digest = hex_of(weights_digest(opened_.checkpoint, digests_));
  // The weights alone do not decide keys and values: equal ones may be turned by another rotary base.
  blueprint.kv_name = blueprint.weights_digest + "/" + hex_of(*config_digest);
  blueprint.warnings = opened_.warnings;
  for (const ExpectedTensor& expected : expected_tensors(opened_.config)) {
    const auto view = opened_.checkpoint.tensor(expected.name);
    if (!view) return view.error();
    blueprint.slots.push_back({expected.name,
                               view->dtype,
                               view->shape,
                               Bytes(std::int64_t(view->bytes.size())),
                               digests_.at(expected.name),
                               {}});
  }
  return blueprint;
}

}  // namespace sangam
