// The header's length is a multiple of eight, as in the files that the reference library writes.
#include "storage/checkpoint/safetensors_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>

namespace sangam {
namespace {

std::string header_of(const std::map<std::string, TensorView>& tensors) {
  boost::json::object header;
  std::size_t offset = 0;
  for (const auto& [name, view] : tensors) {
    boost::json::object entry;
    entry["dtype"] = name_of(view.dtype);
    entry["shape"] = boost::json::array(view.shape.begin(), view.shape.end());
    entry["data_offsets"] = boost::json::array{offset, offset + view.bytes.size()};
    header[name] = std::move(entry);
    offset += view.bytes.size();
  }
  std::string text = boost::json::serialize(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[std::size_t(i)] = char(std::uint64_t(text.size()) >> (8 * i) & 0xffu);
  return length + text;
}

/// A file under a name of its own until it is complete.
class Draft {
 public:
  explicit Draft(std::filesystem::path path)
      : path_(std::move(path)), draft_(path_.string() + ".draft"), file_(::open(draft_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)) {}
  ~Draft() {
    if (file_ >= 0) ::close(file_);
    if (!kept_) ::unlink(draft_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  bool write(const char* bytes, std::size_t count) {
    while (file_ >= 0 && count > 0) {
      const auto done = ::write(file_, bytes, count);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return false;
      bytes += done;
      count -= std::size_t(done);
    }
    return file_ >= 0;
  }
  bool keep() {
    kept_ = ::fsync(file_) == 0 && ::rename(draft_.c_str(), path_.c_str()) == 0;
    return kept_;
  }

 private:
  std::filesystem::path path_;
  std::string draft_;
  int file_;
  bool kept_ = false;
};

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors) {
  Draft draft(path);
  const std::string header = header_of(tensors);
  bool written = draft.write(header.data(), header.size());
  for (const auto& [name, view] : tensors) {
    written = written && draft.write(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  }
  if (written && draft.keep()) return {};
  const int why = errno;
  return make_error(why == ENOSPC ? ErrorCode::exhausted : ErrorCode::invalid_input,
                    path.string() + ": cannot be written: " + std::strerror(why));
}

}  // namespace sangam
