// The stages of a move.
#include "gpu/residency/model_stock.hpp"

#include <algorithm>
#include <utility>

#include "gpu/kernels/ops.hpp"
#include "gpu/residency/model_card.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {

ModelStock::ModelStock(Parts parts, Bytes host_max)
    : parts_(parts), host_(parts.segments.pool().device(), host_max) {}

void ModelStock::add(const ModelId& model, std::filesystem::path folder) {
  entries_[model].folder = std::move(folder);
}

void ModelStock::adopt(const ModelId& model, SlotTable table, NamedWeights weights) {
  for (const auto& [name, slot] : table.slots()) weights.slots[name] = slot.segment->digest();
  entries_.at(model).adopted.emplace(std::move(table), std::move(weights));
  changed();
}

/// Opens it for reading, and names its tensors where somebody has read it before.
Result<void> ModelStock::open_folder(Entry& entry) {
  auto reading = FolderReading::open(entry.folder);
  if (!reading) return reading.error();
  entry.reading = std::move(*reading);
  const auto take = [&](const NamedWeights& weights) {
    auto blueprint = entry.reading->blueprint(weights);
    if (!blueprint) return false;  // Of another state of the folder: it is read.
    entry.blueprint = std::move(*blueprint);
    changed();
    return true;
  };
  if (entry.adopted && take(entry.adopted->second)) return {};
  entry.adopted.reset();
  for (const auto& peer : going_->peers) {
    if (const auto weights = peer->weights(going_->model); weights && take(*weights)) break;
  }
  return {};
}

/// And nobody has touched the folder since.
bool ModelStock::is_read(const Entry& entry) {
  if (!entry.reading || !entry.blueprint) return false;
  const auto stamp = stamp_of(entry.folder);
  return stamp && *stamp == entry.blueprint->stamp;
}

Result<void> ModelStock::begin(const ModelId& model, Residency target, Peers peers, std::unique_ptr<WeightsPull> pull) {
  Entry& entry = entries_.at(model);
  SANGAM_ASSERT(!going_ && entry.residency != target, model);
  if (parts_.shelf != nullptr) parts_.shelf->let_go();
  going_ = Going();
  going_->model = model;
  going_->target = target;
  going_->peers = std::move(peers);
  going_->pull = std::move(pull);
  if (target == Residency::cold) {
    going_->stage = Stage::ready;
  } else if (entry.residency == Residency::active) {
    going_->stage = entry.host.empty() ? Stage::keep : Stage::ready;
  } else if (auto begun = begin_rise(entry); !begun) {
    give_up(begun.error());
    return begun;
  }
  if (going_->stage != Stage::reserve) return {};
  auto reserved = reserve();
  if (!reserved) give_up(reserved.error());
  return reserved;
}

/// The nearest place first: what a former process has left, host memory, a folder that has been read, then others.
Result<void> ModelStock::begin_rise(Entry& entry) {
  const bool is_known = entry.residency == Residency::warm || entry.adopted || is_read(entry);
  if (is_known || going_->target != Residency::active || !going_->peers.empty()) going_->pull.reset();
  if (!going_->pull) return from_folder(entry);
  entry.blueprint.reset();
  going_->stage = Stage::ask;
  return {};
}

Result<void> ModelStock::from_folder(Entry& entry) {
  going_->stage = Stage::read;
  if (entry.residency == Residency::cold && !is_read(entry)) {
    entry.blueprint.reset();
    if (auto opened = open_folder(entry); !opened) return opened;
  }
  const bool rises_whole = going_->target == Residency::active;
  if (entry.blueprint) going_->stage = rises_whole ? Stage::reserve : Stage::keep;
  if (entry.adopted && rises_whole) going_->stage = Stage::ready;
  return {};
}

void ModelStock::abandon() {
  going_.reset();
}

/// Room may come, so what was read for it is kept; anything else is not trusted a second time.
void ModelStock::give_up(const Error& error) {
  const ModelId model = going_->model;
  going_.reset();
  Entry& entry = entries_.at(model);
  if (entry.residency == Residency::active || error.code == ErrorCode::exhausted) return;
  entry.reading.reset();
  entry.adopted.reset();
  if (error.code == ErrorCode::corrupt) drop_host_copy(model, entry);
  if (entry.residency == Residency::cold) entry.blueprint.reset();
  changed();
}

std::string_view ModelStock::phase() const {
  if (!going_) return "";
  switch (going_->stage) {
    case Stage::ask: return "ask";
    case Stage::read: return "read";
    case Stage::reserve:
    case Stage::prove: return "reserve";
    case Stage::copy: return going_->peers.empty() && !going_->pull ? "copy" : "fork";
    case Stage::keep: return "keep";
    case Stage::ready: break;
  }
  return "ready";
}

Result<bool> ModelStock::advance(Bytes most, Millis wait) {
  const bool last = going_->stage == Stage::ready;
  if (auto advanced = advance_stage(most, wait); !advanced) {
    give_up(advanced.error());
    return advanced.error();
  }
  if (!last) return false;
  arrive();
  return true;
}

Result<void> ModelStock::advance_stage(Bytes most, Millis wait) {
  switch (going_->stage) {
    case Stage::ask: return ask(wait);
    case Stage::read: return read(most);
    case Stage::reserve: return reserve();
    case Stage::prove: return prove(most);
    case Stage::copy: return copy(most, wait);
    case Stage::keep: return keep(most);
    case Stage::ready: break;
  }
  return make_ready();
}

/// A folder here is not read for it, but must not say that the model is another one.
Result<void> ModelStock::ask(Millis wait) {
  Entry& entry = entries_.at(going_->model);
  auto blueprint = going_->pull->blueprint(wait);
  if (blueprint && !*blueprint) return {};
  const auto here = digest_of_file(entry.folder / "config.json");
  const bool fits = blueprint && (!here || *here == digest_of(std::string_view((*blueprint)->config_text)));
  if (fits) {
    entry.blueprint = std::move(**blueprint);
    changed();
    going_->stage = Stage::reserve;
    return {};
  }
  going_->pull.reset();
  auto opened = from_folder(entry);
  if (opened || blueprint) return opened;
  return make_error(opened.error().code, opened.error().context + "; and from other hosts: " + blueprint.error().context);
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
  changed();
  going_->stage = going_->target == Residency::active ? Stage::reserve : Stage::keep;
  return {};
}

std::vector<WantedSlot> ModelStock::with_sources(const Entry& entry) const {
  std::vector<WantedSlot> slots = entry.blueprint->slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!entry.host.empty()) {
      slots[i].source = entry.host[i]->bytes();
      continue;
    }
    for (std::size_t turn = 0; turn < going_->peers.size() && slots[i].source.empty(); ++turn)
      slots[i].source = going_->peers[(i + turn) % going_->peers.size()]->find(slots[i].digest);
    if (!slots[i].source.empty()) continue;
    slots[i].comes_later = going_->pull != nullptr;
    if (!slots[i].comes_later) slots[i].source = entry.reading->source(slots[i].name);
  }
  return slots;
}

Result<void> ModelStock::reserve() {
  auto load = parts_.segments.begin(with_sources(entries_.at(going_->model)));
  if (!load) return without_room(load.error());
  going_->load = std::move(*load);
  going_->stage = going_->load->is_proven() ? Stage::copy : Stage::prove;
  return {};
}

/// Pages of a model that has gone, which another host is still reading, will be free in a moment: no error then.
Result<void> ModelStock::without_room(const Error& error) {
  const bool is_read_still = parts_.shelf != nullptr && !parts_.shelf->let_go();
  if (error.code != ErrorCode::exhausted || !is_read_still) return error;
  going_->load.reset();
  going_->stage = Stage::reserve;
  return {};
}

Result<void> ModelStock::prove(Bytes most) {
  if (auto proven = going_->load->prove(most); !proven) return without_room(proven.error());
  if (going_->load->is_proven()) going_->stage = Stage::copy;
  return {};
}

Result<void> ModelStock::copy(Bytes most, Millis wait) {
  SegmentLoad& load = *going_->load;
  const Bytes before = load.copied();
  Result<void> moved;
  if (!load.copied_all()) {
    moved = load.copy(most);
  } else if (!load.complete()) {
    moved = fork(most, wait);
  }
  moved_ += load.copied() - before;
  if (!moved) return without_peers(moved.error());
  if (load.complete()) going_->stage = Stage::ready;
  return {};
}

Result<void> ModelStock::fork(Bytes most, Millis wait) {
  going_->was_pulled = true;
  auto moved = going_->pull->advance(*going_->load, most, wait);
  if (moved || moved.error().code != ErrorCode::unavailable) return moved;
  return supply_from_storage(moved.error());
}

/// What nobody sends any more.
Result<void> ModelStock::supply_from_storage(const Error& why) {
  Entry& entry = entries_.at(going_->model);
  auto reading = FolderReading::open(entry.folder);
  if (!reading) return make_error(reading.error().code, why.context + "; and from storage: " + reading.error().context);
  entry.reading = std::move(*reading);
  for (const SegmentLoad::Awaited& one : going_->load->awaited()) {
    if (auto supplied = going_->load->supply(one.index, entry.reading->find(one.slot)); !supplied)
      return make_error(ErrorCode::corrupt, supplied.error().context);
  }
  going_->pull.reset();
  return {};
}

/// A peer may have let go what was being copied from it, and storage may have other weights than another host had;
/// storage alone has them all.
Result<void> ModelStock::without_peers(Error error) {
  if (error.code != ErrorCode::corrupt || (going_->peers.empty() && !going_->was_pulled)) return error;
  Entry& entry = entries_.at(going_->model);
  going_->load.reset();
  going_->peers.clear();
  going_->pull.reset();
  if (!std::exchange(going_->was_pulled, false)) {
    going_->stage = Stage::reserve;
    return {};
  }
  entry.reading.reset();
  entry.blueprint.reset();
  return from_folder(entry);
}

/// Of a slot of a model that is active, or else is being read.
std::span<const std::byte> ModelStock::source_of(const Entry& entry, std::size_t slot) const {
  const std::string& name = entry.blueprint->slots[slot].name;
  return entry.table ? entry.table->slots().at(name).view.bytes : entry.reading->source(name);
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
  if (entry.residency == Residency::active) {
    // Nobody is to find what may be overwritten.
    if (auto told = publish(going_->model, nullptr); !told) return told;
    if (parts_.shelf != nullptr) parts_.shelf->withdraw(going_->model);
    return parts_.engine.unload(going_->model);
  }
  if (going_->target != Residency::active) return {};
  SlotTable table = going_->load ? parts_.segments.commit(std::move(*going_->load)) : entry.adopted->first;
  auto model = Model::create(entry.blueprint->config, table.lookup(), parts_.ops);
  if (!model) return model.error();
  double& rate = entry.blueprint->prefill_tokens_per_second;
  if (rate <= 0 && parts_.prefill_rate) rate = parts_.prefill_rate(**model);
  auto loaded = parts_.engine.load(going_->model, {table, std::move(*model), entry.blueprint->kv_name});
  if (!loaded) return loaded;
  if (auto told = publish(going_->model, &table); !told) {
    (void)parts_.engine.unload(going_->model);
    return told;
  }
  if (parts_.shelf != nullptr) parts_.shelf->offer(going_->model, card_of(*entry.blueprint), table);
  entry.table = std::move(table);
  return {};
}

/// Tells whoever comes after this process what is active, with this change.
Result<void> ModelStock::publish(const ModelId& changed, const SlotTable* table) {
  if (parts_.kept == nullptr) return {};
  std::map<ModelId, const SlotTable*> tables;
  for (const auto& [model, entry] : entries_) {
    if (model != changed && entry.table) tables[model] = &*entry.table;
  }
  if (table != nullptr) tables[changed] = table;
  ManifestRecord record = record_of(tables);
  for (const auto& [model, named] : tables) record.notes[model] = note_of(*entries_.at(model).blueprint);
  return parts_.kept->write(record);
}

void ModelStock::arrive() {
  Entry& entry = entries_.at(going_->model);
  if (!going_->kept.empty()) {
    entry.host = std::move(going_->kept);
    note_host_copy(entry);
  }
  if (entry.residency == Residency::active) entry.table.reset();
  if (going_->target == Residency::active) entry.adopted.reset();
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
  changed();
}

}  // namespace sangam
