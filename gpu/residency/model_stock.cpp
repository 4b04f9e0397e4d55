// The stages of a move.
#include "gpu/residency/model_stock.hpp"

#include <algorithm>
#include <utility>

#include "gpu/kernels/ops.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {

ModelStock::ModelStock(Parts parts, Bytes host_max)
    : parts_(parts), host_(parts.segments.pool().device(), host_max) {}

void ModelStock::add(const ModelId& model, std::filesystem::path folder) {
  entries_[model].folder = std::move(folder);
}

Result<void> ModelStock::begin(const ModelId& model, Residency target) {
  Entry& entry = entries_.at(model);
  SANGAM_ASSERT(!going_ && entry.residency != target, model);
  Going going;
  going.model = model;
  going.target = target;
  if (target == Residency::cold) {
    going.stage = Stage::ready;
  } else if (entry.residency == Residency::active) {
    going.stage = entry.host.empty() ? Stage::keep : Stage::ready;
  } else if (entry.residency == Residency::warm || (entry.reading && entry.blueprint)) {
    going.stage = target == Residency::active ? Stage::reserve : Stage::keep;
  } else {
    auto reading = FolderReading::open(entry.folder);
    if (!reading) return reading.error();
    entry.reading = std::move(*reading);
  }
  going_ = std::move(going);
  if (going_->stage != Stage::reserve) return {};
  auto reserved = reserve();
  if (!reserved) abandon();
  return reserved;
}

void ModelStock::abandon() {
  going_.reset();
}

std::string_view ModelStock::phase() const {
  if (!going_) return "";
  switch (going_->stage) {
    case Stage::read: return "read";
    case Stage::reserve: return "reserve";
    case Stage::copy: return "copy";
    case Stage::keep: return "keep";
    case Stage::ready: break;
  }
  return "ready";
}

Result<bool> ModelStock::advance(Bytes most) {
  const bool last = going_->stage == Stage::ready;
  if (auto advanced = advance_stage(most); !advanced) {
    abandon();
    return advanced.error();
  }
  if (!last) return false;
  arrive();
  return true;
}

Result<void> ModelStock::advance_stage(Bytes most) {
  switch (going_->stage) {
    case Stage::read: return read(most);
    case Stage::reserve: return reserve();
    case Stage::copy: return copy(most);
    case Stage::keep: return keep(most);
    case Stage::ready: break;
  }
  return make_ready();
}

Result<void> ModelStock::read(Bytes most) {
  Entry& entry = entries_.at(going_->model);
  const Bytes before = entry.reading->read();
  const bool done = entry.reading->advance(most);
  moved_ += entry.reading->read() - before;
  if (!done) return {};
  auto blueprint = entry.reading->blueprint();
  if (!blueprint) return blueprint.error();
  entry.blueprint = std::move(*blueprint);
  measured_.clear();
  going_->stage = going_->target == Residency::active ? Stage::reserve : Stage::keep;
  return {};
}

std::vector<WantedSlot> ModelStock::with_sources(const Entry& entry) const {
  std::vector<WantedSlot> slots = entry.blueprint->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].source = entry.host.empty() ? entry.reading->source(slots[i].name) : entry.host[i]->bytes();
  }
  return slots;
}

Result<void> ModelStock::reserve() {
  auto load = parts_.segments.begin(with_sources(entries_.at(going_->model)));
  if (!load) return load.error();
  going_->load = std::move(*load);
  going_->stage = Stage::copy;
  return {};
}

Result<void> ModelStock::copy(Bytes most) {
  SegmentLoad& load = *going_->load;
  const Bytes before = load.copied();
  if (!load.complete()) {
    if (auto copied = load.copy(most); !copied) return copied;
  }
  moved_ += load.copied() - before;
  if (load.complete()) going_->stage = Stage::ready;
  return {};
}

/// Of a slot of a model that is active, or else is being read.
std::span<const std::byte> ModelStock::source_of(const Entry& entry, std::size_t slot) const {
  if (entry.residency == Residency::active) return entry.device[slot]->bytes();
  return entry.reading->source(entry.blueprint->slots[slot].name);
}

Result<void> ModelStock::keep(Bytes most) {
  const Entry& entry = entries_.at(going_->model);
  const auto& slots = entry.blueprint->slots;
  for (Bytes done; done < most;) {
    const bool is_full = going_->kept.empty() || going_->offset == going_->kept.back()->bytes().size();
    if (is_full && going_->kept.size() == slots.size()) {
      going_->stage = Stage::ready;
      return {};
    }
    if (is_full) {
      auto made = keep_next(slots[going_->kept.size()]);
      if (!made || going_->stage != Stage::keep) return made;
      continue;
    }
    const std::span target = going_->kept.back()->bytes().subspan(going_->offset);
    const std::size_t piece = std::min(target.size(), std::size_t((most - done).count()));
    const std::span source = source_of(entry, going_->kept.size() - 1);
    const CopyPiece pieces[] = {{target.data(), source.data() + going_->offset, piece}};
    if (auto copied = parts_.segments.pool().device().copy(pieces); !copied) return copied;
    going_->offset += piece;
    done += Bytes(std::int64_t(piece));
    moved_ += Bytes(std::int64_t(piece));
    const WantedSlot& slot = slots[going_->kept.size() - 1];
    if (piece == target.size()) host_.enter(slot.digest, going_->kept.back());
  }
  return {};
}

/// The copy that is there, or a place for one. Without one a model that leaves the device goes all the way.
Result<void> ModelStock::keep_next(const WantedSlot& slot) {
  if (auto there = host_.find(slot.digest, slot.bytes)) {
    going_->offset = there->bytes().size();
    going_->kept.push_back(std::move(there));
    return {};
  }
  auto made = host_.make(slot.bytes);
  while (!made && made.error().code == ErrorCode::exhausted && make_host_room(going_->model)) {
    made = host_.make(slot.bytes);
  }
  if (made) {
    going_->offset = 0;
    going_->kept.push_back(std::move(*made));
    return {};
  }
  if (entries_.at(going_->model).residency != Residency::active) return made.error();
  going_->kept.clear();
  going_->target = Residency::cold;
  going_->stage = Stage::ready;
  demoted_.push_back(going_->model);
  return {};
}

Result<void> ModelStock::make_ready() {
  Entry& entry = entries_.at(going_->model);
  if (entry.residency == Residency::active) return parts_.engine.unload(going_->model);
  if (going_->target != Residency::active) return {};
  SlotTable table = parts_.segments.commit(std::move(*going_->load));
  auto model = Model::create(entry.blueprint->config, table.lookup(), parts_.ops);
  if (!model) return model.error();
  std::vector<std::shared_ptr<const Segment>> device;
  for (const WantedSlot& slot : entry.blueprint->slots) device.push_back(table.slots().at(slot.name).segment);
  Model* ready = model->get();
  auto loaded =
      parts_.engine.load(going_->model, {std::move(table), std::move(*model), entry.blueprint->kv_name});
  if (!loaded) return loaded;
  entry.device = std::move(device);
  entry.model = ready;
  return {};
}

void ModelStock::arrive() {
  Entry& entry = entries_.at(going_->model);
  if (!going_->kept.empty()) {
    entry.host = std::move(going_->kept);
    note_host_copy(entry);
  }
  if (entry.residency == Residency::active) entry.device.clear();
  entry.residency = going_->target;
  if (entry.residency == Residency::active) {
    entry.uses += 1.0;
    if (!entry.host.empty()) note_host_copy(entry);
  }
  if (entry.residency == Residency::cold) {
    entry.host.clear();
    entry.blueprint.reset();
  }
  entry.reading.reset();
  going_.reset();
  measured_.clear();
}

}  // namespace sangam
