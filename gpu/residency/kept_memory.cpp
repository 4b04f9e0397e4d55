// What is put into the store of descriptors, and what is made of it by those who come after.
#include "gpu/residency/kept_memory.hpp"

#include <utility>

namespace sangam {
namespace {

/// A worker's list in the store: its pool, then its manifest.
constexpr std::size_t kPoolPart = 0;
constexpr std::size_t kManifestPart = 1;
constexpr std::size_t kParts = 2;

ManifestIdentity identity_of(const std::string& worker, const CpuDeviceOptions& device) {
  return {device.page, Pages(device.size / device.page), digest_of("cpu worker " + worker)};
}

Result<std::vector<SharedPages>> parts_of(const std::string& store, const std::string& worker) {
  auto kept = DescriptorStoreClient(store).get(worker);
  if (!kept || kept->size() == kParts) return kept;
  return make_error(ErrorCode::corrupt, worker + ": the store has " + std::to_string(kept->size()) +
                                            " pieces of memory under this name instead of a pool and a manifest");
}

CpuDeviceOptions device_of(const SharedPages& pool, Bytes page) {
  return {Bytes(std::int64_t(pool.bytes)), page};
}

}  // namespace

Result<KeptMemory> KeptMemory::open(const KeptMemoryOptions& options) {
  KeptMemory memory;
  if (!options.store.empty()) {
    auto kept = parts_of(options.store, options.name);
    if (kept) {
      memory.adopt(options, std::move(*kept));
    } else if (kept.error().code != ErrorCode::not_found) {
      memory.notes_.push_back(kept.error().context);
    }
  }
  if (!memory.device_) {
    if (auto made = memory.make(options); !made) return made.error();
  }
  return memory;
}

/// All or nothing: memory without a manifest is memory of which nothing is known.
void KeptMemory::adopt(const KeptMemoryOptions& options, std::vector<SharedPages> kept) {
  auto manifest =
      Manifest::adopt(std::move(kept[kManifestPart].file), identity_of(options.name, options.device));
  auto record = manifest ? manifest->read() : Result<ManifestRecord>(manifest.error());
  if (!record) {
    notes_.push_back(record.error().context);
    return;
  }
  auto device = CpuDevice::adopt(std::move(kept[kPoolPart].file), options.device);
  if (!device) {
    notes_.push_back(device.error().context);
    return;
  }
  device_ = std::move(*device);
  manifest_ = std::move(*manifest);
  left_ = std::move(*record);
}

Result<void> KeptMemory::make(const KeptMemoryOptions& options) {
  auto device = CpuDevice::create(options.device);
  if (!device) return device.error();
  if (!options.store.empty()) {
    auto manifest = Manifest::create(identity_of(options.name, options.device));
    if (!manifest) return manifest.error();
    manifest_ = std::move(*manifest);
    auto file = (*device)->file();
    if (!file) return file.error();
    device_file_ = std::move(*file);
    if (auto stored = put(options); !stored) notes_.push_back(stored.error().context);
  }
  device_ = std::move(*device);
  return {};
}

Result<void> KeptMemory::put(const KeptMemoryOptions& options) {
  // Before the memory is to be found there is to be a record in it, if of nothing.
  if (auto written = manifest_->write({}); !written) return written;
  auto manifest = manifest_->file();
  if (!manifest) return manifest.error();
  std::vector<SharedPages> parts(kParts);
  parts[kPoolPart] = {std::move(*std::exchange(device_file_, std::nullopt)), 0, std::size_t(options.device.size.count())};
  parts[kManifestPart] = {std::move(*manifest), 0, Manifest::kRecordBytesMax};
  return DescriptorStoreClient(options.store).put(options.name, parts);
}

Result<void> KeptMemory::write(const ManifestRecord& record) {
  return manifest_ ? manifest_->write(record) : Result<void>();
}

Result<std::shared_ptr<const PeerPool>> PeerPool::open(const std::string& store, const std::string& worker,
                                                       Bytes page) {
  auto parts = parts_of(store, worker);
  if (!parts) return parts.error();
  SharedPages& pool = (*parts)[kPoolPart];
  auto device = CpuDevice::adopt(std::move(pool.file), device_of(pool, page));
  if (!device) return device.error();
  auto peer = std::make_shared<PeerPool>();
  peer->device_ = std::move(*device);
  return std::shared_ptr<const PeerPool>(std::move(peer));
}

Result<std::shared_ptr<const PeerWeights>> PeerWeights::open(const std::string& store, const std::string& worker,
                                                             Bytes page) {
  auto parts = parts_of(store, worker);
  if (!parts) return parts.error();
  SharedPages& part = (*parts)[kPoolPart];
  const CpuDeviceOptions device = device_of(part, page);
  auto manifest = Manifest::adopt(std::move((*parts)[kManifestPart].file), identity_of(worker, device));
  if (!manifest) return manifest.error();
  auto record = manifest->read();
  if (!record) return record.error();
  auto pool = CpuDevice::adopt(std::move(part.file), device);
  if (!pool) return pool.error();
  auto peer = std::make_shared<PeerWeights>();
  peer->device_ = std::move(*pool);
  peer->record_ = std::move(*record);
  const PageArena arena = peer->device_->arena();
  for (const ManifestSegment& segment : peer->record_.segments) {
    if (segment.place.pages.size() != 1) continue;
    const std::byte* first = arena.at(segment.place.pages[0].first) + segment.place.offset.count();
    peer->segments_[segment.digest] = {first, std::size_t(segment.place.bytes.count())};
  }
  return std::shared_ptr<const PeerWeights>(std::move(peer));
}

std::optional<NamedWeights> PeerWeights::weights(const ModelId& model) const {
  const auto table = record_.tables.find(model);
  const auto note = record_.notes.find(model);
  if (table == record_.tables.end() || note == record_.notes.end()) return std::nullopt;
  NamedWeights weights = weights_noted(note->second);
  for (const ManifestSlot& slot : table->second) weights.slots[slot.name] = record_.segments[slot.segment].digest;
  return weights;
}

std::span<const std::byte> PeerWeights::find(const Digest& digest) const {
  const auto found = segments_.find(digest);
  return found == segments_.end() ? std::span<const std::byte>() : found->second;
}

}  // namespace sangam
