// Reads TOML tables strictly: a key that nobody asked for, a wrong type or a wrong unit is an error that
// names file, line and the nearest valid name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// One table while it is read. Each `read` leaves the target alone where the key is absent. The first error
/// is kept; what follows it has no effect, so that a caller checks once, at the end.
class ConfigTable {
 public:
  struct Document;

  static Result<ConfigTable> parse_file(const std::string& path);
  static Result<ConfigTable> parse_text(std::string_view text, const std::string& name);

  void read(std::string_view key, std::string& target);
  void read(std::string_view key, bool& target);
  void read(std::string_view key, double& target);
  void read(std::string_view key, std::int64_t& target);
  void read(std::string_view key, std::uint64_t& target);
  void read(std::string_view key, std::vector<std::string>& target);
  /// A duration with its unit: "250ms", "30s", "5m".
  void read(std::string_view key, Millis& target);
  /// A size with its unit: "64KiB", "512MiB", "2GiB".
  void read(std::string_view key, Bytes& target);
  template <class Kind>
  void read(std::string_view key, Name<Kind>& target) {
    std::string text = target.text();
    read(key, text);
    target = Name<Kind>(std::move(text));
  }

  /// A table within this one; an empty one where the key is absent.
  [[nodiscard]] ConfigTable table(std::string_view key);
  /// An array of tables, such as [[worker]].
  [[nodiscard]] std::vector<ConfigTable> tables(std::string_view key);
  [[nodiscard]] bool has(std::string_view key) const;

  /// Makes an error at this key's place in the file, for limits that the reader of the value knows.
  void refuse(std::string_view key, const std::string& why);
  /// The first error of the whole document, or of a key that was never asked for.
  [[nodiscard]] Result<void> finish() const;

 private:
  struct Node;
  ConfigTable(std::shared_ptr<Document> document, std::shared_ptr<Node> node)
      : document_(std::move(document)), node_(std::move(node)) {}

  std::shared_ptr<Document> document_;
  std::shared_ptr<Node> node_;
};

/// "250ms", "30s", "5m", "2h".
[[nodiscard]] Result<Millis> parse_duration(std::string_view text);
/// "64KiB", "512MiB", "2GiB", "100B".
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

}  // namespace sangam
