// Hashing a checkpoint tensor by tensor.
#include "gpu/residency/folder_reading.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "storage/checkpoint/tensor_check.hpp"
#include "storage/hash/weights_digest.hpp"

namespace sangam {

Bytes Blueprint::bytes() const {
  Bytes sum;
  for (const WantedSlot& slot : slots) sum += slot.bytes;
  return sum;
}

Result<FolderReading> FolderReading::open(const std::filesystem::path& folder) {
  auto stamp = stamp_of(folder);
  if (!stamp) return stamp.error();
  auto opened = open_model(folder);
  if (!opened) return opened.error();
  std::ifstream file(folder / "config.json", std::ios::binary);
  std::string config{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return make_error(ErrorCode::not_found, (folder / "config.json").string() + ": cannot be read");
  return FolderReading(std::move(*opened), std::move(config), std::move(*stamp));
}

bool FolderReading::advance(Bytes most) {
  const auto& tensors = opened_.checkpoint.tensors();
  auto left = std::size_t(std::max(most, Bytes{1}).count());
  // In the order of the names: what is done comes before what is not.
  auto next = digests_.empty() ? tensors.begin() : tensors.upper_bound(digests_.rbegin()->first);
  while (next != tensors.end() && left > 0) {
    const std::span rest = next->second.bytes.subspan(offset_);
    const std::span piece = rest.first(std::min(rest.size(), left));
    stream_.update(piece);
    offset_ += piece.size();
    left -= piece.size();
    read_ += Bytes(std::int64_t(piece.size()));
    if (piece.size() < rest.size()) break;
    digests_.emplace(next->first, std::exchange(stream_, DigestStream()).digest());
    offset_ = 0;
    ++next;
  }
  return next == tensors.end();
}

std::string kv_name_of(const Blueprint& blueprint) {
  return blueprint.weights_digest + "/" + hex_of(digest_of(std::string_view(blueprint.config_text)));
}

std::string note_of(const Blueprint& blueprint) {
  return blueprint.weights_digest + "/" + blueprint.stamp + "/" + std::to_string(blueprint.prefill_tokens_per_second);
}

NamedWeights weights_noted(const std::string& note) {
  std::istringstream fields(note);
  NamedWeights weights;
  std::getline(fields, weights.weights_digest, '/');
  std::getline(fields, weights.stamp, '/');
  fields >> weights.prefill_tokens_per_second;
  return weights;
}

Result<std::string> stamp_of(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  auto config = digest_of_file(folder / "config.json");
  if (!config) return config.error();
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& file : fs::directory_iterator(folder, failure)) {
    if (file.path().extension() != ".safetensors") continue;
    files.push_back(file.path().filename().string() + " " + std::to_string(file.file_size(failure)) + " " +
                    std::to_string(file.last_write_time(failure).time_since_epoch().count()));
  }
  if (failure) return make_error(ErrorCode::not_found, folder.string() + ": " + failure.message());
  std::sort(files.begin(), files.end());
  std::string text = hex_of(*config);
  for (const std::string& file : files) text += "/" + file;
  return hex_of(digest_of(std::string_view(text)));
}

Result<Blueprint> FolderReading::blueprint() const {
  return blueprint(digests_, hex_of(weights_digest(opened_.checkpoint, digests_)));
}

Result<Blueprint> FolderReading::blueprint(const NamedWeights& weights) const {
  if (stamp_ != weights.stamp) {
    return make_error(ErrorCode::corrupt, opened_.checkpoint.folder().string() +
                                              ": has changed since these weights were read from it");
  }
  auto named = blueprint(weights.slots, weights.weights_digest);
  if (named) named->prefill_tokens_per_second = weights.prefill_tokens_per_second;
  return named;
}

Result<Blueprint> FolderReading::blueprint(const std::map<std::string, Digest, std::less<>>& digests,
                                           std::string weights_digest) const {
  Blueprint blueprint;
  blueprint.config = opened_.config;
  blueprint.weights_digest = std::move(weights_digest);
  blueprint.stamp = stamp_;
  blueprint.config_text = config_;
  blueprint.kv_name = kv_name_of(blueprint);
  blueprint.warnings = opened_.warnings;
  const auto all = expected_tensors(opened_.config, lookup_in(opened_.checkpoint));
  if (!all) return all.error();
  for (const ExpectedTensor& expected : *all) {
    const auto view = opened_.checkpoint.tensor(expected.name);
    if (!view) return view.error();
    const auto digest = digests.find(expected.name);
    if (digest == digests.end()) {
      return make_error(ErrorCode::corrupt, opened_.checkpoint.folder().string() + ": nobody has named the tensor " +
                                                expected.name);
    }
    blueprint.slots.push_back({expected.name,
                               view->dtype,
                               view->shape,
                               Bytes(std::int64_t(view->bytes.size())),
                               digest->second,
                               {}});
  }
  return blueprint;
}

}  // namespace sangam
