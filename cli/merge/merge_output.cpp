// Tensors that are equal are written with each model: whoever loads them keeps one.
#include "cli/merge/merge_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "cli/report_files.hpp"
#include "storage/checkpoint/safetensors_writer.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// What describes a model beside its weights.
bool is_kept(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string ending = file.extension().string();
  const bool is_text = ending == ".json" || ending == ".txt" || ending == ".model" || ending == ".jinja";
  return is_text && !name.ends_with(".safetensors.index.json") && name != "golden.json";
}

Result<void> copy_description(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::create_directories(to, failure);
  if (!failure && fs::equivalent(from, to, failure)) {
    return make_error(ErrorCode::invalid_input, to.string() + ": is where the model lies that is merged; name another folder with -o");
  }
  auto entry = failure ? fs::directory_iterator() : fs::directory_iterator(from, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    if (!entry->is_regular_file(failure) || !is_kept(entry->path())) continue;
    fs::copy_file(entry->path(), to / entry->path().filename(), fs::copy_options::overwrite_existing, failure);
    if (failure) break;
  }
  if (!failure) return {};
  return make_error(ErrorCode::exhausted, to.string() + ": cannot be written: " + failure.message());
}

std::string name_of_code(const std::optional<RowCode>& code) { return code ? std::string(suffix_of(*code)) : "plain"; }

/// Who stores what in which form, and the digest of each tensor.
Result<json::object> recipe_of(const MergePoolFile& file, merging::Shelf& shelf, const merging::MergeOutcome& outcome) {
  json::array slots;
  for (merging::SiteIndex i = 0; i < outcome.state.size(); ++i) {
    const merging::SlotForm& form = outcome.state[i];
    if (form == merging::SlotForm()) continue;
    const merging::Site& site = shelf.pool().sites()[i];
    const auto formed = shelf.find(i, form);
    if (!formed) return formed.error();
    json::object slot;
    slot["model"] = file.models[site.model].name;
    slot["slot"] = site.slot;
    slot["stored"] = name_of_code(form.code);
    slot["error"] = (*formed)->error;
    if (form.is_shared()) {
      json::array with;
      const auto& members = shelf.pool().groups()[std::size_t(form.group)].sites;
      for (std::size_t k = 0; k < members.size(); ++k) {
        if (form.sharing >> k & 1u) with.emplace_back(file.models[shelf.pool().sites()[members[k]].model].name);
      }
      slot["canonical_of"] = std::move(with);
      if (form.delta) slot["delta"] = name_of_code(form.delta);
      if (form.rank > 0) slot["rank"] = form.rank;
      if (form.affine) slot["affine"] = true;
    }
    json::object tensors;
    for (const merging::SlotTensor& tensor : (*formed)->tensors) tensors[site.slot + tensor.suffix] = hex_of(digest_of(tensor.bytes));
    slot["tensors"] = std::move(tensors);
    slots.push_back(std::move(slot));
  }
  json::object recipe;
  recipe["operator"] = merging::name_of(file.options.merging.op);
  recipe["trajectory"] = hex_of(outcome.trajectory);
  recipe["slots"] = std::move(slots);
  return recipe;
}

double saved_percent(const merging::MergeOutcome& outcome) {
  return 100.0 * (1.0 - double(outcome.bytes.count()) / double(outcome.original.count()));
}

json::object certificates(const MergePoolFile& file, const merging::MergeOutcome& outcome) {
  json::object out;
  out["bytes"] = outcome.bytes.count();
  out["bytes_before"] = outcome.original.count();
  out["saved_percent"] = saved_percent(outcome);
  out["trials"] = outcome.trials.size();
  out["evaluations"] = outcome.evaluations;
  json::array models;
  for (std::size_t m = 0; m < file.models.size(); ++m) {
    const merging::Certificate& c = outcome.certificates[m];
    json::object model;
    model["model"] = file.models[m].name;
    model["budget_points"] = file.models[m].budget;
    model["gate_items"] = outcome.gate[m].items;
    model["gate_drop_points"] = outcome.gate[m].drop();
    model["shadow_items"] = c.counts.items;
    model["shadow_right_before"] = c.counts.right_before;
    model["shadow_lost"] = c.counts.lost;
    model["shadow_won"] = c.counts.won;
    model["shadow_drop_points"] = c.counts.drop();
    model["shadow_drop_bound_points"] = c.bound;
    model["certified"] = c.certified;
    models.push_back(std::move(model));
  }
  out["models"] = std::move(models);
  return out;
}

}  // namespace

Result<void> write_point(const fs::path& folder, const MergePoolFile& file, merging::Shelf& shelf, const merging::MergeOutcome& outcome) {
  std::error_code failure;
  fs::remove(folder / "recipe.json", failure);  // From here on the folder is not complete.
  if (failure) return make_error(ErrorCode::invalid_input, (folder / "recipe.json").string() + ": cannot be replaced: " + failure.message());
  for (std::uint32_t m = 0; m < file.models.size(); ++m) {
    const fs::path own = folder / file.models[m].name;
    if (auto copied = copy_description(file.models[m].folder, own); !copied) return copied;
    const auto tensors = shelf.tensors(m, outcome.state);
    if (!tensors) return tensors.error();
    if (auto written = write_safetensors(own / "model.safetensors", *tensors); !written) return written;
  }
  auto recipe = recipe_of(file, shelf, outcome);
  if (!recipe) return recipe.error();
  (*recipe)["outcome"] = certificates(file, outcome);
  return write_whole((folder / "recipe.json").string(), json::serialize(*recipe));
}

std::string merge_json(const MergePoolFile& file, const merging::MergeOutcome& outcome) { return json::serialize(certificates(file, outcome)); }

std::string merge_table(const MergePoolFile& file, const merging::MergeOutcome& outcome) {
  std::string text = fmt::format("{:.2f} % saved: {} of {} bytes; {} trials\n\n{:<20} {:>12} {:>7} {:>12} {:>12} {:>14}  \n", saved_percent(outcome),
                                 outcome.bytes.count(), outcome.original.count(), outcome.trials.size(), "model", "right before", "budget",
                                 "gate drop", "shadow drop", "at most (95 %)");
  for (std::size_t m = 0; m < file.models.size(); ++m) {
    const merging::Certificate& c = outcome.certificates[m];
    const double before = 100.0 * double(c.counts.right_before) / double(std::max<std::int64_t>(c.counts.items, 1));
    const std::string said = c.certified                               ? "certified"
                             : c.counts.drop() > file.models[m].budget ? "beyond its budget"
                                                                       : fmt::format("cannot be certified with {} items", c.counts.items);
    text += fmt::format("{:<20} {:>12.2f} {:>7.2f} {:>12.2f} {:>12.2f} {:>14.2f}  {}\n", file.models[m].name, before, file.models[m].budget,
                        outcome.gate[m].drop(), c.counts.drop(), c.bound, said);
  }
  return text;
}

}  // namespace sangam
