// Ties the checkpoint, the segments and the model together.
#include "gpu/engine/loader.hpp"

#include <utility>

#include "storage/checkpoint/model_folder.hpp"
#include "storage/checkpoint/tensor_check.hpp"
#include "storage/hash/weights_digest.hpp"

namespace sangam {
namespace {

Result<std::vector<NamedTensor>> tensors_of(const ModelFolder& opened) {
  std::vector<NamedTensor> tensors;
  for (ExpectedTensor& expected : expected_tensors(opened.config)) {
    auto view = opened.checkpoint.tensor(expected.name);
    if (!view) return view.error();
    tensors.push_back({std::move(expected.name), std::move(*view)});
  }
  return tensors;
}

/// The weights alone do not decide keys and values: equal ones may be turned by another rotary base.
Result<std::string> kv_name_of(const std::filesystem::path& folder, const std::string& weights) {
  auto config = digest_of_file(folder / "config.json");
  if (!config) return config.error();
  return weights + "/" + hex_of(*config);
}

}  // namespace

Result<LoadedFolder> load_folder(const std::filesystem::path& folder, SegmentStore& segments, Ops& ops) {
  auto opened = open_model(folder);
  if (!opened) return opened.error();
  auto tensors = tensors_of(*opened);
  if (!tensors) return tensors.error();
  auto weights = segments.load(*tensors);
  if (!weights) return weights.error();
  auto model = Model::create(opened->config, weights->lookup(), ops);
  if (!model) return model.error();
  std::string digest = hex_of(weights_digest(opened->checkpoint));
  auto kv_name = kv_name_of(folder, digest);
  if (!kv_name) return kv_name.error();
  return LoadedFolder{{std::move(*weights), std::move(*model), std::move(*kv_name)},
                      std::move(digest),
                      std::move(opened->warnings)};
}

}  // namespace sangam
