// JSON lines behind tasks, and the shuffle behind splits.
#include "actors/merger/evaluation/task.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <limits>
#include <random>
#include <unordered_set>
#include <utility>

#include "storage/file/mapped_file.hpp"
#include "storage/json/json_fields.hpp"

namespace sangam::merging {
namespace {

namespace json = boost::json;

constexpr std::size_t kTaskBytesMax = std::size_t{256} << 20;
constexpr std::int64_t kShareMax = 1'000'000;  // Times a count of 32 bits fits 64.

std::string_view name_of(TaskKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"exact", "choice", "agreement"};
  return kNames[std::size_t(kind)];
}

TaskKind kind_of(const JsonFields& fields) {
  if (fields.has("choices")) return TaskKind::choice;
  return fields.has("answer") ? TaskKind::exact : TaskKind::agreement;
}

std::string filled_text(JsonFields& fields, std::string_view field) {
  auto text = fields.text(field);
  if (text.empty()) fields.refuse(field, "must not be empty");
  return text;
}

std::vector<std::string> choices_of(JsonFields& fields) {
  std::vector<std::string> choices;
  const json::array* list = fields.maybe_array("choices");
  if (list == nullptr) return choices;
  for (const json::value& choice : *list) {
    if (!choice.is_string() || choice.get_string().empty()) fields.refuse("choices", "must be texts that are not empty");
    if (choice.is_string()) choices.emplace_back(choice.get_string());
  }
  if (list->size() < 2) fields.refuse("choices", "must be two or more; state the others");
  return choices;
}

struct Line {
  TaskKind kind;
  TaskText item;
};

Result<Line> parse_line(std::string_view text, const std::string& place) {
  const auto object = parse_json_object(text, place);
  if (!object) return object.error();
  JsonFields fields(*object, place);
  for (const auto& field : *object) {
    if (field.key() != "prompt" && field.key() != "choices" && field.key() != "answer")
      fields.refuse(field.key(), "is no field of an item; state prompt, choices and answer only");
  }
  Line line{kind_of(fields), {}};
  line.item.prompt = filled_text(fields, "prompt");
  if (line.kind == TaskKind::exact) line.item.answers = {filled_text(fields, "answer")};
  if (line.kind == TaskKind::choice) {
    line.item.answers = choices_of(fields);
    if (!fields.error()) line.item.right = std::size_t(fields.integer("answer", {0, std::int64_t(line.item.answers.size()) - 1}));
  }
  if (fields.error()) return *fields.error();
  return line;
}

/// Below `bound`, each as likely: std::uniform_int_distribution differs between libraries.
std::uint64_t draw_below(std::mt19937_64& random, std::uint64_t bound) {
  const std::uint64_t uneven = (std::numeric_limits<std::uint64_t>::max() % bound + 1) % bound;
  const std::uint64_t last = std::numeric_limits<std::uint64_t>::max() - uneven;
  while (true) {
    const std::uint64_t draw = random();
    if (draw <= last) return draw % bound;
  }
}

/// Fisher and Yates, 1938.
std::vector<std::uint32_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = std::uint32_t(i);
  std::mt19937_64 random(seed);
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[draw_below(random, left)]);
  return order;
}

std::string text_of(const std::vector<std::uint32_t>& list) {
  std::string text;
  for (const auto item : list) text += std::to_string(item) + ",";
  return text + ";";
}

}  // namespace

Result<Task> parse_task(std::string_view text, const std::string& place) {
  Task task;
  task.place = place;
  std::unordered_set<std::string> prompts;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto content = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto where = place + ":" + std::to_string(number);
    auto line = parse_line(content, where);
    if (!line) return line.error();
    if (task.items.empty()) task.kind = line->kind;
    if (line->kind != task.kind) {
      return make_error(ErrorCode::invalid_input,
                        where + ": is an item of kind " + std::string(name_of(line->kind)) + ", but those before are of kind " +
                            std::string(name_of(task.kind)) + "; give each kind its own file");
    }
    line->item.line = number;
    if (!prompts.insert(line->item.prompt).second) ++task.prompts_repeated;
    task.items.push_back(std::move(line->item));
  }
  if (task.items.empty())
    return make_error(ErrorCode::invalid_input, place + ": holds no item; write one JSON object with a prompt on each line");
  return task;
}

Result<Task> load_task(const std::filesystem::path& path) {
  const auto file = MappedFile::open_small(path, kTaskBytesMax);
  if (!file) return file.error();
  return parse_task(file->text(), path.string());
}

Result<std::vector<TaskItem>> tokenized(const Task& task, const Tokenize& tokenize) {
  std::vector<TaskItem> items;
  items.reserve(task.items.size());
  const auto refusal = [&](const TaskText& text, const char* what) {
    return make_error(ErrorCode::invalid_input, task.place + ":" + std::to_string(text.line) + ": " + what +
                                                    " has no tokens in this model's vocabulary; remove the item");
  };
  for (const TaskText& text : task.items) {
    TaskItem item{tokenize(text.prompt, true), {}, text.right};
    if (item.prompt.empty()) return refusal(text, "prompt");
    for (const std::string& answer : text.answers) {
      item.answers.push_back(tokenize(answer, false));
      if (item.answers.back().empty()) return refusal(text, task.kind == TaskKind::choice ? "one of choices" : "answer");
    }
    items.push_back(std::move(item));
  }
  return items;
}

Result<Splits> split_items(std::size_t count, const SplitShares& shares, std::uint64_t seed) {
  const auto parts = std::to_string(shares.profile) + ":" + std::to_string(shares.gate) + ":" + std::to_string(shares.shadow);
  const auto refusal = [&](const std::string& why) {
    return make_error(ErrorCode::invalid_input,
                      "split of " + std::to_string(count) + " items as profile:gate:shadow = " + parts + ": " + why);
  };
  for (const auto share : {shares.profile, shares.gate, shares.shadow}) {
    if (share < 0 || share > kShareMax) return refusal("a share must be from 0 to 1000000");
  }
  const auto whole = std::uint64_t(shares.profile + shares.gate + shares.shadow);
  if (whole == 0) return refusal("all shares are 0; give one at least 1");
  if (count > std::numeric_limits<std::uint32_t>::max()) return refusal("at most 4294967295 items can be dealt");
  const auto order = shuffled(count, seed);
  const auto profile_end = std::uint64_t(count) * std::uint64_t(shares.profile) / whole;
  const auto gate_end = std::uint64_t(count) * std::uint64_t(shares.profile + shares.gate) / whole;
  const auto part = [&](std::uint64_t first, std::uint64_t last) {
    return std::vector<std::uint32_t>(order.begin() + std::ptrdiff_t(first), order.begin() + std::ptrdiff_t(last));
  };
  Splits splits{part(0, profile_end), part(profile_end, gate_end), part(gate_end, count), {}};
  const bool lacks = (shares.profile > 0 && splits.profile.empty()) || (shares.gate > 0 && splits.gate.empty()) ||
                     (shares.shadow > 0 && splits.shadow.empty());
  if (lacks) return refusal("leaves one of them without items; give more items or other shares");
  splits.digest = digest_of(text_of(splits.profile) + text_of(splits.gate) + text_of(splits.shadow));
  return splits;
}

}  // namespace sangam::merging
