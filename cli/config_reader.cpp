// A strict reader over toml++: see the header.
#include "cli/config_reader.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

namespace sangam {

/// Shared by all tables of one file.
struct ConfigTable::Document {
  std::string name;
  toml::table root;
  std::vector<std::shared_ptr<Node>> visited;
  std::optional<Error> first_error;

  void fail(const toml::source_region& where, const std::string& what) {
    if (first_error) return;
    first_error = make_error(ErrorCode::invalid_input, name + ":" + std::to_string(where.begin.line) + ": " + what);
  }
};

/// One table and the keys that were asked for.
struct ConfigTable::Node {
  const toml::table* table = nullptr;  ///< Null: the table is absent and reads as empty.
  std::string path;                    ///< "worker", for messages.
  std::set<std::string, std::less<>> known;
};

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view key, const std::set<std::string, std::less<>>& known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
  return best == known.end() ? std::string() : *best;
}

/// Splits "250ms" into its number and its unit.
std::optional<std::pair<std::int64_t, std::string_view>> split_unit(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || number < 0) return std::nullopt;
  return std::pair{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

/// The number times its unit; nullopt for an unknown unit or more than 63 bits.
std::optional<std::int64_t> parse_with_unit(std::string_view text, std::initializer_list<Unit> units) {
  const auto parts = split_unit(text);
  if (!parts) return std::nullopt;
  for (const auto& [name, factor] : units) {
    if (parts->second != name) continue;
    if (parts->first > std::numeric_limits<std::int64_t>::max() / factor) return std::nullopt;
    return parts->first * factor;
  }
  return std::nullopt;
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  const auto value = parse_with_unit(text, {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}});
  if (value) return Millis(*value);
  return make_error(ErrorCode::invalid_input,
                    "'" + std::string(text) + "' is no duration; write a whole number with ms, s, m or h, like \"250ms\"");
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto value =
      parse_with_unit(text, {{"B", 1}, {"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30}, {"TiB", 1LL << 40}});
  if (value) return Bytes(*value);
  return make_error(ErrorCode::invalid_input,
                    "'" + std::string(text) + "' is no size; write a whole number with B, KiB, MiB or GiB, like \"512MiB\"");
}

Result<ConfigTable> ConfigTable::parse_text(std::string_view text, const std::string& name) {
  auto document = std::make_shared<Document>();
  document->name = name;
  try {
    document->root = toml::parse(text);
  } catch (const toml::parse_error& problem) {
    return make_error(ErrorCode::invalid_input, name + ":" + std::to_string(problem.source().begin.line) +
                                                    ": not valid TOML: " + std::string(problem.description()));
  }
  auto node = std::make_shared<Node>();
  node->table = &document->root;
  document->visited.push_back(node);
  return ConfigTable(std::move(document), std::move(node));
}

Result<ConfigTable> ConfigTable::parse_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return make_error(ErrorCode::not_found, path + ": cannot be read; check the path and its permissions");
  return parse_text(text.str(), path);
}

namespace {

/// Asks for a key and reports a value of another type; null where the key is absent or wrong.
template <class Wanted, class Node, class Document>
const Wanted* find(Document& document, Node& node, std::string_view key, const char* wanted) {
  node.known.emplace(key);
  if (node.table == nullptr) return nullptr;
  const toml::node* value = node.table->get(key);
  if (value == nullptr) return nullptr;
  const Wanted* typed = value->template as<Wanted>();
  if (typed == nullptr) document.fail(value->source(), "'" + std::string(key) + "' must be " + wanted);
  return typed;
}

}  // namespace

void ConfigTable::read(std::string_view key, std::string& target) {
  if (const auto* value = find<toml::value<std::string>>(*document_, *node_, key, "a text in quotes")) target = value->get();
}

void ConfigTable::read(std::string_view key, bool& target) {
  if (const auto* value = find<toml::value<bool>>(*document_, *node_, key, "true or false")) target = value->get();
}

void ConfigTable::read(std::string_view key, double& target) {
  const toml::node* whole = node_->table == nullptr ? nullptr : node_->table->get(key);
  if (whole != nullptr && whole->is_integer()) {
    node_->known.emplace(key);
    target = static_cast<double>(whole->as_integer()->get());
    return;
  }
  if (const auto* value = find<toml::value<double>>(*document_, *node_, key, "a number")) target = value->get();
}

void ConfigTable::read(std::string_view key, std::int64_t& target) {
  const auto* value = find<toml::value<std::int64_t>>(*document_, *node_, key, "a whole number");
  if (value == nullptr) return;
  if (value->get() < 0) return refuse(key, "'" + std::string(key) + "' must not be negative");
  target = value->get();
}

void ConfigTable::read(std::string_view key, std::uint64_t& target) {
  auto value = static_cast<std::int64_t>(target);
  read(key, value);
  target = static_cast<std::uint64_t>(value);
}

void ConfigTable::read(std::string_view key, std::vector<std::string>& target) {
  const auto* list = find<toml::array>(*document_, *node_, key, "a list of texts");
  if (list == nullptr) return;
  target.clear();
  for (const auto& element : *list) {
    const auto* text = element.as_string();
    if (text == nullptr) return document_->fail(element.source(), "'" + std::string(key) + "' must hold texts only");
    target.push_back(text->get());
  }
}

void ConfigTable::read(std::string_view key, Millis& target) {
  std::string text;
  read(key, text);
  if (text.empty()) return;
  const auto value = parse_duration(text);
  value ? void(target = *value) : refuse(key, "'" + std::string(key) + "': " + value.error().context);
}

void ConfigTable::read(std::string_view key, Bytes& target) {
  std::string text;
  read(key, text);
  if (text.empty()) return;
  const auto value = parse_bytes(text);
  value ? void(target = *value) : refuse(key, "'" + std::string(key) + "': " + value.error().context);
}

ConfigTable ConfigTable::table(std::string_view key) {
  auto child = std::make_shared<Node>();
  child->table = find<toml::table>(*document_, *node_, key, "a table");
  child->path = std::string(key);
  document_->visited.push_back(child);
  return ConfigTable(document_, child);
}

std::vector<ConfigTable> ConfigTable::tables(std::string_view key) {
  std::vector<ConfigTable> children;
  const auto* list = find<toml::array>(*document_, *node_, key, "an array of tables, written [[name]]");
  if (list == nullptr) return children;
  for (const auto& element : *list) {
    auto child = std::make_shared<Node>();
    child->table = element.as_table();
    child->path = std::string(key);
    if (child->table == nullptr) document_->fail(element.source(), "'" + std::string(key) + "' must hold tables only");
    document_->visited.push_back(child);
    children.push_back(ConfigTable(document_, child));
  }
  return children;
}

bool ConfigTable::has(std::string_view key) const { return node_->table != nullptr && node_->table->contains(key); }

void ConfigTable::refuse(std::string_view key, const std::string& why) {
  const toml::node* value = node_->table == nullptr ? nullptr : node_->table->get(key);
  document_->fail(value != nullptr ? value->source() : document_->root.source(), why);
}

Result<void> ConfigTable::finish() const {
  for (const auto& node : document_->visited) {
    if (node->table == nullptr) continue;
    for (const auto& [key, value] : *node->table) {
      if (node->known.contains(key.str())) continue;
      const std::string place = node->path.empty() ? "at the top level" : "in [" + node->path + "]";
      const std::string remedy = nearest(key.str(), node->known);
      document_->fail(value.source(), "unknown key '" + std::string(key.str()) + "' " + place +
                                          (remedy.empty() ? "" : "; did you mean '" + remedy + "'?"));
    }
  }
  if (document_->first_error) return *document_->first_error;
  return {};
}

}  // namespace sangam
