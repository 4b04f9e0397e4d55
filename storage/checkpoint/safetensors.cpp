// Finding a checkpoint's files and holding the index against what the shards really contain.
#include "storage/checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <set>
#include <system_error>

#include "storage/checkpoint/shard.hpp"
#include "storage/json/json_fields.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr std::size_t kIndexBytesMax = 100'000'000;

/// tensor -> shard
using WeightMap = std::map<std::string, std::string, std::less<>>;

/// Shards lie in the folder itself: a name that leaves it could read any file of the host.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

Result<WeightMap> read_weight_map(const fs::path& path) {
  const auto index = read_json_object(path, kIndexBytesMax);
  if (!index) return index.error();
  const std::string place = path.string();
  JsonFields fields(*index, place);
  const auto* entries = fields.maybe_object("weight_map");
  if (!entries || entries->empty()) fields.refuse("weight_map", "must map each tensor to its file");
  if (fields.error()) return *fields.error();
  WeightMap map;
  for (const auto& [tensor, file] : *entries) {
    if (!file.is_string() || !is_plain_file_name(std::string_view(file.get_string())))
      return make_error(
          ErrorCode::invalid_input,
          fmt::format("{}: tensor '{}' is in {}, which is not the name of a file in this folder", place,
                      std::string_view(tensor), boost::json::serialize(file).substr(0, 80)));
    map.emplace(tensor, file.get_string());
  }
  return map;
}

/// What to say when a folder holds no safetensors.
Error nothing_to_open(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored))
    return make_error(ErrorCode::not_found,
                      folder.string() + ": no such folder; check the path of the model");
  if (!fs::is_directory(folder, ignored))
    return make_error(ErrorCode::invalid_input,
                      folder.string() + ": not a folder; give the folder of the model");
  std::string text = fmt::format("{}: neither {} nor {} is there", folder.string(), kSingleFile, kIndexFile);
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"})
    if (fs::exists(folder / other, ignored))
      text += fmt::format(", but {} is: convert it to safetensors", other);
  return make_error(ErrorCode::not_found, text + "; download the weights");
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& folder) {
  Checkpoint checkpoint(folder);
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder / kSingleFile, ignored))) {
    if (const auto added = checkpoint.add_file(kSingleFile); !added) return added.error();
    return checkpoint;
  }
  if (!fs::exists(fs::symlink_status(folder / kIndexFile, ignored))) return nothing_to_open(folder);
  if (const auto added = checkpoint.add_shards(); !added) return added.error();
  return checkpoint;
}

/// Returns the names that the file holds.
Result<std::vector<std::string>> Checkpoint::add_file(const std::string& file_name) {
  const fs::path path = folder_ / file_name;
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto tensors = parse_shard(file->bytes(), path.string());
  if (!tensors) return tensors.error();
  std::vector<std::string> names;
  for (ShardTensor& tensor : *tensors) {
    names.push_back(tensor.name);
    if (!tensors_.emplace(tensor.name, std::move(tensor.view)).second)
      return make_error(
          ErrorCode::corrupt,
          fmt::format("{}: tensor '{}' is also in another shard; download or export the model again",
                      path.string(), tensor.name));
  }
  files_.push_back(std::move(*file));
  return names;
}

Result<void> Checkpoint::add_shards() {
  const fs::path index = folder_ / kIndexFile;
  const auto map = read_weight_map(index);
  if (!map) return map.error();
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : *map) shards.insert(shard);
  const auto disagree = [&](const std::string& shard, const std::string& what) {
    return make_error(ErrorCode::corrupt,
                      fmt::format("{}: {}; download the index and the shards of one revision",
                                  (folder_ / shard).string(), what));
  };
  for (const std::string& shard : shards) {
    const auto names = add_file(shard);
    if (!names && names.error().code == ErrorCode::not_found)
      return make_error(ErrorCode::not_found, fmt::format("{}: shard '{}' is named there, but missing: {}",
                                                          index.string(), shard, names.error().context));
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const auto entry = map->find(name);
      if (entry == map->end())
        return disagree(shard, fmt::format("holds tensor '{}', which {} does not name", name, kIndexFile));
      if (entry->second != shard)
        return disagree(
            shard, fmt::format("holds tensor '{}', which {} has in {}", name, kIndexFile, entry->second));
    }
  }
  for (const auto& [tensor, shard] : *map)
    if (!tensors_.contains(tensor))
      return disagree(shard, fmt::format("lacks tensor '{}', which {} has in it", tensor, kIndexFile));
  return {};
}

Result<TensorView> Checkpoint::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  return make_error(ErrorCode::not_found,
                    fmt::format("{}: no tensor '{}' among {}", folder_.string(), name, tensors_.size()));
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, view] : tensors_) names.push_back(name);
  return names;
}

Bytes Checkpoint::bytes() const {
  std::size_t total = 0;
  for (const auto& [name, view] : tensors_) total += view.bytes.size();
  return Bytes(static_cast<Bytes::Rep>(total));
}

}  // namespace sangam
