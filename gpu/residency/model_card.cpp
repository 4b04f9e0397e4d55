// Lines of a word and its values, then the tensors, then config.json as it is:
//   sangam-card 2 / weights HEX / tied 0|1 / eos N... / tensors COUNT / DTYPE ROWSxCOLUMNS HEX NAME ... / config BYTES / ...
#include "gpu/residency/model_card.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "storage/checkpoint/tensor_check.hpp"

namespace sangam {
namespace {

constexpr std::string_view kFirstLine = "sangam-card 2";
constexpr std::array kDTypes{DType::bf16, DType::f16, DType::f32, DType::i8, DType::u8, DType::i32, DType::i64};

/// Takes a card apart line by line; the first thing that is wrong is kept.
class CardLines {
 public:
  CardLines(std::string_view text, const std::string& place) : left_(text), place_(place) {}

  /// The next line, which begins with `word`: what follows that.
  std::string_view line(std::string_view word) {
    const std::string_view whole = line();
    if (whole == word) return {};
    if (!whole.starts_with(word) || whole[word.size()] != ' ') {
      fail("'" + std::string(word) + "' is missing");
      return {};
    }
    return whole.substr(word.size() + 1);
  }
  std::string_view line() {
    const std::size_t end = left_.find('\n');
    if (end == std::string_view::npos) {
      fail("it is cut off");
      return {};
    }
    const std::string_view whole = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return whole;
  }
  template <class Number>
  Number number(std::string_view text) {
    Number value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) fail("'" + std::string(text) + "' is no number");
    return value;
  }
  [[nodiscard]] std::string_view rest() const { return left_; }
  void fail(const std::string& why) {
    if (!error_) error_ = make_error(ErrorCode::corrupt, place_ + ": no card of a model: " + why);
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::string_view left_;
  const std::string& place_;
  std::optional<Error> error_;
};

std::string_view word_of(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

/// A line of a tensor.
std::string line_of(const WantedSlot& slot) {
  std::string line(name_of(slot.dtype));
  for (std::size_t i = 0; i < slot.shape.size(); ++i) line += (i == 0 ? ' ' : 'x') + std::to_string(slot.shape[i]);
  return line + ' ' + hex_of(slot.digest) + ' ' + slot.name;
}

WantedSlot read_slot(CardLines& lines) {
  std::string_view line = lines.line();
  const std::string_view dtype = word_of(line);
  std::string_view extents = word_of(line);
  const auto type = std::find_if(kDTypes.begin(), kDTypes.end(), [&](DType one) { return name_of(one) == dtype; });
  WantedSlot slot;
  while (!extents.empty()) {
    const std::size_t end = std::min(extents.find('x'), extents.size());
    slot.shape.push_back(lines.number<std::int64_t>(extents.substr(0, end)));
    extents.remove_prefix(std::min(end + 1, extents.size()));
  }
  const auto digest = digest_from_hex(word_of(line));
  slot.name = line;
  if (type == kDTypes.end() || !digest || slot.name.empty()) {
    lines.fail("a tensor has no type, no digest or no name");
    return slot;
  }
  slot.dtype = *type;
  slot.digest = *digest;
  return slot;
}

/// The card's slots are those that the configuration calls for, in that order.
void check_slots(CardLines& lines, Blueprint& blueprint) {
  std::map<std::string_view, TensorView> tensors;
  for (const WantedSlot& slot : blueprint.slots) tensors.emplace(slot.name, TensorView{slot.dtype, slot.shape, {}});
  const auto stored = [&](std::string_view name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? std::nullopt : std::optional(found->second);
  };
  const auto expected = expected_tensors(blueprint.config, stored);
  if (!expected) return lines.fail(expected.error().context);
  if (expected->size() != blueprint.slots.size()) {
    return lines.fail(std::to_string(blueprint.slots.size()) + " tensors instead of " + std::to_string(expected->size()));
  }
  for (std::size_t i = 0; i < expected->size(); ++i) {
    WantedSlot& slot = blueprint.slots[i];
    const ExpectedTensor& want = (*expected)[i];
    if (slot.name != want.name) return lines.fail("the tensor " + want.name + " is missing");
    if (const std::string fault = fault_of(want, slot.dtype, slot.shape); !fault.empty()) return lines.fail(fault);
    slot.bytes = Bytes(elements(slot.shape) * std::int64_t(bytes_of(slot.dtype)));
  }
}

}  // namespace

std::string card_of(const Blueprint& blueprint) {
  std::ostringstream card;
  card << kFirstLine << "\nweights " << blueprint.weights_digest << "\ntied " << blueprint.config.tied_embeddings << "\neos";
  for (const TokenId token : blueprint.config.eos_tokens) card << ' ' << token;
  card << "\ntensors " << blueprint.slots.size() << '\n';
  for (const WantedSlot& slot : blueprint.slots)
    card << line_of(slot) << '\n';
  card << "config " << blueprint.config_text.size() << '\n' << blueprint.config_text;
  return card.str();
}

Result<Blueprint> blueprint_of_card(std::string_view card, const std::string& place) {
  CardLines lines(card, place);
  lines.line(kFirstLine);
  Blueprint blueprint;
  blueprint.weights_digest = lines.line("weights");
  const bool tied = lines.number<int>(lines.line("tied")) != 0;
  std::vector<TokenId> eos_tokens;
  for (std::string_view eos = lines.line("eos"); !eos.empty();) eos_tokens.push_back(lines.number<TokenId>(word_of(eos)));
  const auto count = lines.number<std::size_t>(lines.line("tensors"));
  if (!digest_from_hex(blueprint.weights_digest)) lines.fail("the weights have no digest");
  // What the tensors must be is known only from what stands behind them.
  CardLines ahead = lines;
  for (std::size_t i = 0; i < count && !ahead.error(); ++i) ahead.line();
  const auto config_bytes = ahead.number<std::size_t>(ahead.line("config"));
  if (config_bytes != ahead.rest().size()) ahead.fail("it is cut off");
  if (lines.error()) return *lines.error();
  if (ahead.error()) return *ahead.error();
  blueprint.config_text = ahead.rest();
  auto config = parse_model_config(blueprint.config_text, place + ": config.json");
  if (!config) return config.error();
  blueprint.config = std::move(*config);
  blueprint.config.tied_embeddings = tied;
  blueprint.config.eos_tokens = std::move(eos_tokens);
  for (std::size_t i = 0; i < count && !lines.error(); ++i) blueprint.slots.push_back(read_slot(lines));
  if (!lines.error()) check_slots(lines, blueprint);
  if (lines.error()) return *lines.error();
  blueprint.kv_name = kv_name_of(blueprint);
  return blueprint;
}

}  // namespace sangam
