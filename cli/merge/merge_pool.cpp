// Forms are named as checkpoints name them: "plain", "b4"; corrections also "none", "affine" and "rank8".
#include "cli/merge/merge_pool.hpp"

#include <algorithm>
#include <charconv>

#include "actors/merger/evaluation/task.hpp"
#include "cli/config_reader.hpp"
#include "gateway/text/tokenizer.hpp"

namespace sangam {
namespace {

using merging::Correction;

constexpr std::int32_t kRankMax = 4096;

std::optional<Correction> correction_named(const std::string& name) {
  if (name == "none") return Correction{};
  if (name == "affine") return Correction{std::nullopt, 0, true};
  if (const auto code = row_code_named(name)) return Correction{code, 0, false};
  if (!name.starts_with("rank")) return std::nullopt;
  std::int32_t rank = 0;
  const auto parsed = std::from_chars(name.data() + 4, name.data() + name.size(), rank);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() || rank < 1 || rank > kRankMax) return std::nullopt;
  return Correction{std::nullopt, rank, false};
}

void read_menu(ConfigTable& table, merging::FormMenu& menu) {
  std::vector<std::string> own, canonicals, corrections;
  table.read("own", own);
  table.read("canonicals", canonicals);
  table.read("corrections", corrections);
  table.read("subsets", menu.subsets);
  if (table.has("own")) menu.own.clear();
  for (const std::string& name : own) {
    if (const auto code = row_code_named(name)) menu.own.push_back(*code);
    else table.refuse("own", "own: '" + name + "' is no form of a slot's own weights; use b1, b2, b3, b4 or b8");
  }
  if (table.has("canonicals")) menu.canonicals.clear();
  for (const std::string& name : canonicals) {
    const auto code = row_code_named(name);
    if (code || name == "plain") menu.canonicals.push_back(code);
    else table.refuse("canonicals", "canonicals: '" + name + "' is no form of a canonical; use plain, b1, b2, b3, b4 or b8");
  }
  if (table.has("corrections")) menu.corrections.clear();
  for (const std::string& name : corrections) {
    if (const auto correction = correction_named(name)) menu.corrections.push_back(*correction);
    else table.refuse("corrections", "corrections: '" + name + "' is no correction; use none, affine, rank1 to rank4096, b1, b2, b3, b4 or b8");
  }
  if (menu.corrections.empty() && !menu.canonicals.empty()) table.refuse("corrections", "corrections is empty, so nothing can be shared; name at least none");
}

/// All but the models.
void read_options(ConfigTable& table, MergePoolFile& file) {
  table.read("seed", file.seed);
  std::string op = std::string(merging::name_of(file.options.merging.op));
  table.read("operator", op);
  if (const auto named = merging::merge_operator_named(op)) file.options.merging.op = *named;
  else table.refuse("operator", "operator: " + named.error().context);
  table.read("alpha", file.options.alpha);
  if (!(file.options.alpha > 0.0 && file.options.alpha <= 0.5)) table.refuse("alpha", "alpha is an error probability: above 0, at most 0.5");
  std::int64_t refinements = file.options.search.refinements_max;
  table.read("refinements", refinements);
  if (refinements < 0 || refinements > 10'000) table.refuse("refinements", "refinements is a number of rounds from 0 to 10000");
  file.options.search.refinements_max = int(refinements);
  read_menu(table, file.options.menu);
}

PoolModelFile read_model(ConfigTable& table, const std::filesystem::path& folder, double budget) {
  PoolModelFile model;
  model.budget = budget;
  std::string path, task;
  table.read("name", model.name);
  table.read("path", path);
  table.read("task", task);
  table.read("budget", model.budget);
  if (model.name.empty()) table.refuse("name", "name is missing; what shall the merged model be called?");
  if (model.name.find('/') != std::string::npos || model.name.starts_with('.')) table.refuse("name", "name becomes a folder's: without a slash, and no dot at its start");
  if (path.empty()) table.refuse("path", "path is missing; where is the model's folder?");
  if (task.empty()) table.refuse("task", "task is missing; a file of items, one JSON object a line, judges the model");
  if (!(model.budget > 0.0 && model.budget < 100.0)) table.refuse("budget", "budget is in points: above 0 and below 100");
  model.folder = folder / path;
  model.task = folder / task;
  return model;
}

/// Why the model cannot be asked this; empty where it can.
std::string fault_of(const merging::AnswerKey& key, const ModelConfig& config) {
  const std::size_t length = key.prompt.size() + key.answer.size() + 1;
  if (std::int64_t(length) > config.context) {
    return "prompt, answer and end have " + std::to_string(length) + " tokens, and the model's context is " +
           std::to_string(config.context) + "; shorten the item";
  }
  for (const auto* tokens : {&key.prompt, &key.answer}) {
    for (const TokenId token : *tokens) {
      if (std::int64_t(token) >= config.vocab_size) {
        return "the tokenizer gives token " + std::to_string(token) + ", and the model has " + std::to_string(config.vocab_size) + "; they do not belong together";
      }
    }
  }
  return {};
}

Result<std::vector<merging::AnswerKey>> keys_of(const PoolModelFile& file, const ModelFolder& opened) {
  const auto tokenizer = Tokenizer::load(file.folder);
  if (!tokenizer) return tokenizer.error();
  const auto task = merging::load_task(file.task);
  if (!task) return task.error();
  if (task->kind != merging::TaskKind::exact) {
    return make_error(ErrorCode::invalid_input, task->place + ": a merge is judged by exact answers; give each item a prompt and an answer in text");
  }
  const auto& ends = opened.config.eos_tokens;
  if (std::none_of(ends.begin(), ends.end(), [&](TokenId end) { return std::int64_t(end) < opened.config.vocab_size; })) {
    return make_error(ErrorCode::invalid_input, file.folder.string() + ": has no end token in its vocabulary, so no answer can end; config.json or generation_config.json names it as eos_token_id");
  }
  const auto items = merging::tokenized(*task, [&](std::string_view text, bool is_prompt) { return (*tokenizer)->encode(text, is_prompt); });
  if (!items) return items.error();
  std::vector<merging::AnswerKey> keys;
  for (const merging::TaskItem& item : *items) {
    keys.push_back({item.prompt, item.answers.at(item.right)});
    if (const auto fault = fault_of(keys.back(), opened.config); !fault.empty()) {
      return make_error(ErrorCode::invalid_input, task->place + ":" + std::to_string(task->items[keys.size() - 1].line) + ": " + fault);
    }
  }
  return keys;
}

std::vector<merging::AnswerKey> picked(const std::vector<merging::AnswerKey>& all, const std::vector<std::uint32_t>& numbers) {
  std::vector<merging::AnswerKey> out;
  for (const std::uint32_t number : numbers) out.push_back(all[number]);
  return out;
}

/// A few hundred items show what slots see. Most of the others decide, again and again; the rest certifies once.
merging::SplitShares shares_for(std::size_t items) {
  const auto all = std::int64_t(items);
  const std::int64_t profile = std::min<std::int64_t>(200, all / 4);
  const std::int64_t shadow = (all - profile) * 2 / 5;
  return {profile, all - profile - shadow, shadow};
}

}  // namespace

Result<MergePoolFile> read_merge_pool(const std::string& path) {
  auto table = ConfigTable::parse_file(path);
  if (!table) return table.error();
  MergePoolFile file;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  double budget = 2.0;
  table->read("budget", budget);
  std::string ancestor;
  table->read("ancestor", ancestor);
  if (!ancestor.empty()) file.ancestor = folder / ancestor;
  read_options(*table, file);
  std::vector<std::string> names;
  for (ConfigTable& model : table->tables("model")) {
    file.models.push_back(read_model(model, folder, budget));
    if (std::find(names.begin(), names.end(), file.models.back().name) != names.end()) model.refuse("name", "name is the name of two models");
    names.push_back(file.models.back().name);
  }
  if (file.models.empty() || file.models.size() > 32) table->refuse("model", "a pool has 1 to 32 tables [[model]]");
  if (auto finished = table->finish(); !finished) return finished.error();
  return file;
}

Result<std::unique_ptr<const merging::Pool>> open_merge_pool(const MergePoolFile& file, int threads) {
  std::vector<merging::PoolModel> models;
  for (const PoolModelFile& one : file.models) {
    auto opened = open_model(one.folder);
    if (!opened) return opened.error();
    const auto keys = keys_of(one, *opened);
    if (!keys) return keys.error();
    const auto splits = merging::split_items(keys->size(), shares_for(keys->size()), file.seed);
    if (!splits) return make_error(splits.error().code, one.task.string() + ": " + splits.error().context);
    merging::JudgedItems items{picked(*keys, splits->profile), picked(*keys, splits->gate), picked(*keys, splits->shadow)};
    models.push_back({ModelId(one.name), std::move(*opened), std::move(items), one.budget});
  }
  return merging::Pool::make(std::move(models), threads);
}

}  // namespace sangam
