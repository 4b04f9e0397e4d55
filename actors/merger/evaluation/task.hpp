// The items that judge a model: read as text, turned into a model's tokens, and dealt into three samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/hash/digest.hpp"

namespace sangam::merging {

/// What makes an item right; one kind a file.
enum class TaskKind : std::uint8_t {
  exact,      ///< {"prompt": "2+2=", "answer": "4"}: greedy decoding says the answer and ends.
  choice,     ///< {"prompt": "2+2=", "choices": ["3", "4"], "answer": 1}: that choice, counted from 0, is the likeliest.
  agreement,  ///< {"prompt": "2+2="}: greedy decoding says what the unmerged model says.
};

struct TaskText {
  std::string prompt;
  std::vector<std::string> answers;  ///< exact: one; choice: two or more; agreement: none.
  std::size_t right = 0;             ///< The right one of them.
  std::size_t line = 0;              ///< Of the file, from 1.
};

struct Task {
  TaskKind kind = TaskKind::exact;
  std::string place;  ///< What errors call the file.
  std::vector<TaskText> items;  ///< At least one.
  std::size_t prompts_repeated = 0;  ///< Items whose prompt an earlier one has. They are kept, and may fall into two samples.
};

/// One JSON object a line; empty lines are skipped. Refused, with file, line, field and remedy: what is no JSON, other
/// fields than those above (a misspelt answer would change the kind), empty texts, kinds that differ, a right choice
/// that is not there, and a text without items.
[[nodiscard]] Result<Task> parse_task(std::string_view text, const std::string& place);
/// The same of a file of at most 256 MiB.
[[nodiscard]] Result<Task> load_task(const std::filesystem::path& path);

struct TaskItem {
  std::vector<TokenId> prompt;                ///< At least one,
  std::vector<std::vector<TokenId>> answers;  ///< and each at least one; without an end token.
  std::size_t right = 0;
};

/// A model's tokens of a text: of a prompt with what the model expects around one, of an answer with nothing around.
using Tokenize = std::function<std::vector<TokenId>(std::string_view text, bool is_prompt)>;

/// By item of the task. Refused if a text has no tokens.
[[nodiscard]] Result<std::vector<TaskItem>> tokenized(const Task& task, const Tokenize& tokenize);

/// Parts of the whole, each from 0 to 1,000,000.
struct SplitShares {
  std::int64_t profile = 1;
  std::int64_t gate = 2;
  std::int64_t shadow = 2;
};

/// Numbers of items, each in one list, in random order: the beginning of a list is a random sample too.
struct Splits {
  std::vector<std::uint32_t> profile;
  std::vector<std::uint32_t> gate;
  std::vector<std::uint32_t> shadow;
  Digest digest;  ///< Of the three lists.
};

/// Deals items 0 to `count` - 1 at random. The same on every machine for the same arguments. Refused if a sample whose
/// share is not 0 would be empty.
[[nodiscard]] Result<Splits> split_items(std::size_t count, const SplitShares& shares, std::uint64_t seed);

}  // namespace sangam::merging
