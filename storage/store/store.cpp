// RocksDB behind Store. Synced group commits, a write-ahead log that may be torn only at its end, small
// buffers.
#include "storage/store/store.hpp"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <shared_mutex>
#include <system_error>

namespace sangam {
namespace {

namespace fs = std::filesystem;

/// In the order of Family; RocksDB insists on its own "default".
constexpr std::array kFamilyNames = {"meta", "catalog", "trajectory"};
constexpr const char* kFormatKey = "format";
constexpr const char* kFormat = "1";
constexpr std::size_t kBufferBytes = 4 << 20;
constexpr std::size_t kLogBytesMax = 4 * kBufferBytes;
/// Opening writes out what the log holds, so with less room than this it might fail.
constexpr std::size_t kReopenBytes = kLogBytesMax;

rocksdb::Slice slice_of(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view view_of(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

Error error_of(const rocksdb::Status& status, const fs::path& folder) {
  const std::string text = fmt::format("store {}: {}", folder.string(), status.ToString());
  if (status.IsNoSpace())
    return make_error(ErrorCode::exhausted,
                      fmt::format("{}; free {} MB of that disk, then repeat", text, kReopenBytes >> 20));
  if (status.IsCorruption())
    return make_error(ErrorCode::corrupt,
                      text + "; restore it from a backup, or move it away to start empty");
  if (text.find("Permission denied") == text.npos && text.find("/LOCK:") != text.npos)
    return make_error(
        ErrorCode::unavailable,
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
    return refused(
        fault == std::errc::no_space_on_device ? ErrorCode::exhausted : ErrorCode::invalid_input,
        fmt::format("cannot create it: {}; give another path or make the parent writable", fault.message()));
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
    return refused(ErrorCode::invalid_input,
                   fmt::format("cannot be written: {}; make it writable for this user",
                               std::generic_category().message(errno)));
  if (fs::exists(folder / "CURRENT", fault)) return std::nullopt;
  for (const auto& entry : fs::directory_iterator(folder, fault))
    if (entry.path().extension() == ".sst" || entry.path().filename().string().starts_with("MANIFEST"))
      return refused(ErrorCode::corrupt,
                     fmt::format("has {} but no CURRENT file; restore it from a backup, or move "
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
    if (name != rocksdb::kDefaultColumnFamilyName &&
        std::ranges::find(kFamilyNames, name) == kFamilyNames.end())
      return make_error(
          ErrorCode::corrupt,
          fmt::format("store {}: has a family '{}' of a later version; run that version, or use another "
                      "folder",
                      folder.string(), name));
  return std::nullopt;
}

bool room_to_reopen(const fs::path& folder) {
  std::error_code fault;
  const auto space = fs::space(folder, fault);
  return !fault && space.available >= kReopenBytes;
}

/// Leaves recovery from a full disk to `commit`, which tries at each write: RocksDB's own thread looks for
/// space every five seconds only.
class RecoveryByHand : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* automatic) override {
    *automatic = false;
  }
};

/// What matters reaches us as a Status. RocksDB's own log file, on a full disk, ends the process in builds
/// with assertions (Debian's 7.8 is one): its writer asserts that no append follows one that failed.
class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::DBOptions database_options() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // A crash can only tear the end of the log. Damage before it would silently lose acknowledged writes under
  // the default mode, which stops there and goes on.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_total_wal_size = kLogBytesMax;
  options.manifest_preallocation_size = 64 << 10;  // 4 MB by default, which a small disk lacks
  options.info_log = std::make_shared<NoLog>();
  options.listeners.push_back(std::make_shared<RecoveryByHand>());
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
  std::unique_ptr<rocksdb::DB> db;                    ///< None after a reopening that failed with `fault`.
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  ///< The default one first.
  rocksdb::Status fault;
  std::shared_mutex door;  ///< Shared by who uses `db`, alone by who replaces it.
  std::mutex counters;     ///< One count_up at a time.

  ~Opened() { close(); }

  rocksdb::Status open() {
    rocksdb::DB* raw = nullptr;
    fault = rocksdb::DB::Open(database_options(), folder.string(), families(), &handles, &raw);
    db.reset(raw);
    return fault;
  }
  void close() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    handles.clear();
    db.reset();
  }
  [[nodiscard]] rocksdb::ColumnFamilyHandle* at(Family family) const {
    return handles[static_cast<std::size_t>(family) + 1];
  }
  rocksdb::Status write(const std::vector<Batch::Change>& changes);
};

rocksdb::Status Store::Opened::write(const std::vector<Batch::Change>& changes) {
  if (!db) return fault;
  rocksdb::WriteBatch writes;
  for (const Batch::Change& change : changes) {
    auto* family = at(change.family);
    const auto status =
        change.value ? writes.Put(family, change.key, *change.value) : writes.Delete(family, change.key);
    if (!status.ok()) return status;
  }
  rocksdb::WriteOptions synced;
  synced.sync = true;
  return db->Write(synced, &writes);
}

Store::Store(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const fs::path& folder) {
  if (auto fault = folder_fault(folder)) return *fault;
  if (auto fault = family_fault(folder)) return *fault;
  auto opened = std::make_unique<Opened>();
  opened->folder = folder;
  if (const auto status = opened->open(); !status.ok()) return error_of(status, folder);
  Store store(std::move(opened));
  const auto format = store.get(Family::meta, kFormatKey);
  if (!format) return format.error();
  if (format->has_value() && *format != kFormat)
    return make_error(
        ErrorCode::corrupt,
        fmt::format("store {}: has format '{}', and this version knows '{}'; run a later version, or use "
                    "another folder",
                    folder.string(), **format, kFormat));
  if (!format->has_value())
    if (const auto put = store.put(Family::meta, kFormatKey, kFormat); !put) return put.error();
  return store;
}

Result<std::optional<std::string>> Store::get(Family family, std::string_view key) const {
  const std::shared_lock inside(opened_->door);
  if (!opened_->db) return error_of(opened_->fault, opened_->folder);
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
  Opened& store = *opened_;
  {
    const std::shared_lock inside(store.door);
    const auto status = store.write(batch.changes_);
    if (status.ok()) return {};
    const bool was_full = status.IsNoSpace() || !store.db;
    if (!was_full || !room_to_reopen(store.folder)) return error_of(status, store.folder);
  }
  // After a full disk RocksDB refuses every write. Its Resume can wait for ever on a flush that has just
  // failed (7.8), so we open anew, which replays the log as after a crash.
  const std::unique_lock alone(store.door);
  auto status = store.write(batch.changes_);  // another thread may have come first
  if (!status.ok()) {
    store.close();
    status = store.open();
    if (status.ok()) status = store.write(batch.changes_);
  }
  if (!status.ok()) return error_of(status, store.folder);
  return {};
}

Result<void> Store::scan(Family family, std::string_view prefix, const Visit& visit) const {
  const std::shared_lock inside(opened_->door);
  if (!opened_->db) return error_of(opened_->fault, opened_->folder);
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
    return make_error(ErrorCode::corrupt,
                      fmt::format("store {}: counter '{}' holds '{}'; restore it from a backup",
                                  opened_->folder.string(), key, text.substr(0, 40)));
  if (const auto put_back = put(family, key, std::to_string(count + 1)); !put_back) return put_back.error();
  return count + 1;
}

}  // namespace sangam
