// RocksDB behind Store. Synced group commits, a write-ahead log that may be torn only at its end, small buffers.
#include "storage/store/store.hpp"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <system_error>

namespace sangam {
namespace {

namespace fs = std::filesystem;

/// In the order of Family; RocksDB insists on its own "default".
constexpr std::array kFamilyNames = {"meta", "catalog"};
constexpr const char* kFormatKey = "format";
constexpr const char* kFormat = "1";
constexpr std::size_t kBufferBytes = 4 << 20;

rocksdb::Slice slice_of(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

Error error_of(const rocksdb::Status& status, const fs::path& folder) {
  const std::string text = fmt::format("store {}: {}", folder.string(), status.ToString());
  if (status.IsNoSpace()) return make_error(ErrorCode::exhausted, text + "; free space on that disk, then repeat");
  if (status.IsCorruption())
    return make_error(ErrorCode::corrupt, text + "; restore it from a backup, or move it away to start empty");
  if (text.find("Permission denied") == text.npos && text.find("/LOCK:") != text.npos)
    return make_error(ErrorCode::unavailable,
                      text + "; another process has it open: stop that one (fuser -v shows it) or use another folder");
  return make_error(ErrorCode::unavailable, text + "; check the disk and the permissions");
}

/// Refuses the folders in which RocksDB would fail unclearly, or start afresh beside what was there.
std::optional<Error> folder_fault(const fs::path& folder) {
  const auto refused = [&](ErrorCode code, const std::string& what) {
    return make_error(code, fmt::format("store {}: {}", folder.string(), what));
  };
  std::error_code fault;
  if (fs::exists(folder, fault) && !fs::is_directory(folder, fault))
    return refused(ErrorCode::invalid_input, "not a folder; give another path");
  fs::create_directories(folder, fault);
  if (fault)
    return refused(fault == std::errc::no_space_on_device ? ErrorCode::exhausted : ErrorCode::invalid_input,
                   fmt::format("cannot create it: {}; give another path or make the parent writable", fault.message()));
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
    return refused(ErrorCode::invalid_input, fmt::format("cannot be written: {}; make it writable for this user",
                                                         std::generic_category().message(errno)));
  if (fs::exists(folder / "CURRENT", fault)) return std::nullopt;
  for (const auto& entry : fs::directory_iterator(folder, fault))
    if (entry.path().extension() == ".sst" || entry.path().filename().string().starts_with("MANIFEST"))
      return refused(ErrorCode::corrupt, fmt::format("has {} but no CURRENT file; restore it from a backup, or move "
                                                     "it away to start empty",
                                                     entry.path().filename().string()));
  return std::nullopt;
}

/// A family that we do not know was written by a later version, which would miss what we then write.
std::optional<Error> family_fault(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "CURRENT", ignored)) return std::nullopt;
  std::vector<std::string> there;
  const auto status = rocksdb::DB::ListColumnFamilies({}, folder.string(), &there);
  if (!status.ok()) return error_of(status, folder);
  for (const std::string& name : there)
    if (name != rocksdb::kDefaultColumnFamilyName && std::ranges::find(kFamilyNames, name) == kFamilyNames.end())
      return make_error(ErrorCode::corrupt,
                        fmt::format("store {}: has a family '{}' of a later version; run that version, or use another "
                                    "folder",
                                    folder.string(), name));
  return std::nullopt;
}

rocksdb::DBOptions database_options() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // A crash can only tear the end of the log. Damage before it would silently lose acknowledged writes under the
  // default mode, which stops there and goes on.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_total_wal_size = 4 * kBufferBytes;
  options.manifest_preallocation_size = 64 << 10;  // 4 MB by default, which a small disk lacks
  options.max_log_file_size = 1 << 20;
  options.keep_log_file_num = 4;
  options.info_log_level = rocksdb::WARN_LEVEL;
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> families() {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = kBufferBytes;
  std::vector<rocksdb::ColumnFamilyDescriptor> all = {{rocksdb::kDefaultColumnFamilyName, options}};
  for (const char* name : kFamilyNames) all.emplace_back(name, options);
  return all;
}

}  // namespace

struct Store::Opened {
  fs::path folder;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  ///< The default one first.
  std::mutex counters;                                ///< One count_up at a time.

  ~Opened() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
  [[nodiscard]] rocksdb::ColumnFamilyHandle* at(Family family) const {
    return handles[static_cast<std::size_t>(family) + 1];
  }
};

Store::Store(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const fs::path& folder) {
  if (auto fault = folder_fault(folder)) return *fault;
  if (auto fault = family_fault(folder)) return *fault;
  auto opened = std::make_unique<Opened>();
  opened->folder = folder;
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(database_options(), folder.string(), families(), &opened->handles, &db);
  if (!status.ok()) return error_of(status, folder);
  opened->db.reset(db);
  Store store(std::move(opened));
  const auto format = store.get(Family::meta, kFormatKey);
  if (!format) return format.error();
  if (format->has_value() && *format != kFormat)
    return make_error(ErrorCode::corrupt,
                      fmt::format("store {}: has format '{}', and this version knows '{}'; run a later version, or use "
                                  "another folder",
                                  folder.string(), **format, kFormat));
  if (!format->has_value())
    if (const auto put = store.put(Family::meta, kFormatKey, kFormat); !put) return put.error();
  return store;
}

Result<std::optional<std::string>> Store::get(Family family, std::string_view key) const {
  std::string value;
  const auto status = opened_->db->Get({}, opened_->at(family), slice_of(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return error_of(status, opened_->folder);
  return std::optional(std::move(value));
}

Result<void> Store::put(Family family, std::string_view key, std::string_view value) {
  return commit(Batch().put(family, std::string(key), std::string(value)));
}

Result<void> Store::erase(Family family, std::string_view key) {
  return commit(Batch().erase(family, std::string(key)));
}

Result<void> Store::commit(const Batch& batch) {
  rocksdb::WriteBatch writes;
  for (const Batch::Change& change : batch.changes_) {
    auto* family = opened_->at(change.family);
    const auto status = change.value ? writes.Put(family, change.key, *change.value) : writes.Delete(family, change.key);
    if (!status.ok()) return error_of(status, opened_->folder);
  }
  rocksdb::WriteOptions synced;
  synced.sync = true;
  auto status = opened_->db->Write(synced, &writes);
  // After a full disk RocksDB refuses every write until it is resumed, which itself needs space.
  if (!status.ok()) {
    status = opened_->db->Resume();
    if (status.ok()) status = opened_->db->Write(synced, &writes);
  }
  if (!status.ok()) return error_of(status, opened_->folder);
  return {};
}

Result<void> Store::scan(Family family, std::string_view prefix, const Visit& visit) const {
  const std::unique_ptr<rocksdb::Iterator> at(opened_->db->NewIterator({}, opened_->at(family)));
  for (at->Seek(slice_of(prefix)); at->Valid() && at->key().starts_with(slice_of(prefix)); at->Next())
    if (!visit(view_of(at->key()), view_of(at->value()))) break;
  if (!at->status().ok()) return error_of(at->status(), opened_->folder);
  return {};
}

Result<std::uint64_t> Store::count_up(Family family, const std::string& key) {
  const std::lock_guard one_at_a_time(opened_->counters);
  const auto stored = get(family, key);
  if (!stored) return stored.error();
  const std::string text = stored->value_or("0");
  std::uint64_t count = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (fault != std::errc() || end != text.data() + text.size() || count == UINT64_MAX)
    return make_error(ErrorCode::corrupt, fmt::format("store {}: counter '{}' holds '{}'; restore it from a backup",
                                                      opened_->folder.string(), key, text.substr(0, 40)));
  if (const auto put_back = put(family, key, std::to_string(count + 1)); !put_back) return put_back.error();
  return count + 1;
}

}  // namespace sangam
