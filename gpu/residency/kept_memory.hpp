// Memory that outlives its worker: a pool and its manifest, kept by a store of descriptors, for the worker's successor
// and for its peers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device/cpu/cpu_device.hpp"
#include "gpu/device/descriptor_store.hpp"
#include "gpu/memory/manifest.hpp"
#include "gpu/residency/folder_reading.hpp"

namespace sangam {

struct KeptMemoryOptions {
  std::string store;  ///< The socket of the store; empty: none, and the memory ends with the process.
  std::string name;   ///< Of the worker.
  CpuDeviceOptions device;
};

/// Makes a device, or finds the one that the former process of this name has left.
class KeptMemory {
 public:
  /// A store that does not answer, or memory that is foreign or damaged, is no reason not to serve: `notes` tells
  /// of it, and the memory is new.
  static Result<KeptMemory> open(const KeptMemoryOptions& options);

  [[nodiscard]] std::unique_ptr<Device> take_device() { return std::move(device_); }
  /// What the former process had in it. Not proven yet.
  [[nodiscard]] const std::optional<ManifestRecord>& left() const { return left_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// From now on, this is what a successor finds.
  Result<void> write(const ManifestRecord& record);

 private:
  KeptMemory() = default;
  void adopt(const KeptMemoryOptions& options, std::vector<SharedPages> kept);
  Result<void> make(const KeptMemoryOptions& options);
  Result<void> put(const KeptMemoryOptions& options);

  std::unique_ptr<Device> device_;
  std::optional<FileDescriptor> device_file_;
  std::optional<Manifest> manifest_;
  std::optional<ManifestRecord> left_;
  std::vector<std::string> notes_;
};

/// The pool of a worker on this host, where it lies. It may overwrite it at any time: what is copied from here is to
/// be held against a digest.
class PeerPool {
 public:
  static Result<std::shared_ptr<const PeerPool>> open(const std::string& store, const std::string& worker, Bytes page);

  [[nodiscard]] PageArena arena() const { return device_->arena(); }
  [[nodiscard]] Pages pages() const { return device_->pages(); }

 private:
  std::unique_ptr<CpuDevice> device_;
};

/// The weights of a worker on this host, read where they lie. It may free or overwrite them at any time: what is
/// copied from here is to be held against its digest.
class PeerWeights {
 public:
  static Result<std::shared_ptr<const PeerWeights>> open(const std::string& store, const std::string& worker,
                                                         Bytes page);

  /// Nothing where the peer has no such model.
  [[nodiscard]] std::optional<NamedWeights> weights(const ModelId& model) const;
  /// Empty where the peer has it not, or not in one piece.
  [[nodiscard]] std::span<const std::byte> find(const Digest& digest) const;

 private:
  std::unique_ptr<CpuDevice> device_;
  ManifestRecord record_;
  std::map<Digest, std::span<const std::byte>> segments_;
};

}  // namespace sangam
