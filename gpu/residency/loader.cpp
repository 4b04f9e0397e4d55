// All at once what ModelStock does in pieces.
#include "gpu/residency/loader.hpp"

#include <limits>
#include <utility>

#include "gpu/residency/folder_reading.hpp"

namespace sangam {
namespace {

constexpr Bytes kAll{std::numeric_limits<std::int64_t>::max()};

}  // namespace

Result<LoadedFolder> load_folder(const std::filesystem::path& folder, SegmentStore& segments, Ops& ops) {
  auto reading = FolderReading::open(folder);
  if (!reading) return reading.error();
  while (!reading->advance(kAll)) {
  }
  auto blueprint = reading->blueprint();
  if (!blueprint) return blueprint.error();
  for (WantedSlot& slot : blueprint->slots) slot.source = reading->source(slot.name);
  auto load = segments.begin(blueprint->slots);
  if (!load) return load.error();
  while (!load->is_proven()) {
    if (auto proven = load->prove(kAll); !proven) return proven.error();
  }
  while (!load->complete()) {
    if (auto copied = load->copy(kAll); !copied) return copied.error();
  }
  SlotTable table = segments.commit(std::move(*load));
  auto model = Model::create(blueprint->config, table.lookup(), ops);
  if (!model) return model.error();
  return LoadedFolder{{std::move(table), std::move(*model), std::move(blueprint->kv_name)},
                      std::move(blueprint->weights_digest),
                      std::move(blueprint->warnings)};
}

}  // namespace sangam
