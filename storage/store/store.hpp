// What must survive a crash: ordered keys and values in families, on RocksDB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Each family is a key space of its own; a batch may span several.
enum class Family : std::uint8_t { meta, catalog, trajectory };

/// Changes that happen together or not at all, in order.
class Batch {
 public:
  Batch& put(Family family, std::string key, std::string value) {
    changes_.push_back({family, std::move(key), std::move(value)});
    return *this;
  }
  Batch& erase(Family family, std::string key) {
    changes_.push_back({family, std::move(key), std::nullopt});
    return *this;
  }

 private:
  friend class Store;
  struct Change {
    Family family;
    std::string key;
    std::optional<std::string> value;  ///< None: erase.
  };
  std::vector<Change> changes_;
};

/// One process opens a store at a time; its threads may share it. A write that returned success is on the
/// disk (synced). One that returned an error may or may not be found later: write it again. On a full disk
/// writes fail with `exhausted`, reads go on, and writes succeed again once 16 MB are free.
class Store {
 public:
  /// Creates what is missing. Refuses a folder that another process has open (`unavailable`), that is damaged
  /// or of a newer version (`corrupt`), or that cannot be written (`invalid_input`).
  [[nodiscard]] static Result<Store> open(const std::filesystem::path& folder);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  [[nodiscard]] Result<std::optional<std::string>> get(Family family, std::string_view key) const;
  [[nodiscard]] Result<void> put(Family family, std::string_view key, std::string_view value);
  [[nodiscard]] Result<void> erase(Family family, std::string_view key);
  [[nodiscard]] Result<void> commit(const Batch& batch);

  /// Visits the keys that begin with `prefix`, in order, as of one moment, until `visit` returns false.
  /// `visit` must not write to this store.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  [[nodiscard]] Result<void> scan(Family family, std::string_view prefix, const Visit& visit) const;

  /// Adds one to a counter (absent: 0) and returns the new value; of any two calls, one sees the other's.
  [[nodiscard]] Result<std::uint64_t> count_up(Family family, const std::string& key);

 private:
  struct Opened;
  explicit Store(std::unique_ptr<Opened> opened);

  std::unique_ptr<Opened> opened_;
};

}  // namespace sangam
