// Lines through zlib's gz functions.
#include "sim/trace/zip_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sangam::sim {
namespace {

constexpr std::size_t kLineMax = 1 << 20;
constexpr unsigned kBufferBytes = 1 << 18;

gzFile as_gz(void* file) {
  return static_cast<gzFile>(file);
}

std::filesystem::path unfinished(const std::filesystem::path& path) {
  return path.string() + ".part";
}

std::string reason() {
  return errno == 0 ? "out of memory" : std::strerror(errno);
}

}  // namespace

void ZipReader::Close::operator()(void* file) const {
  gzclose_r(as_gz(file));
}

ZipReader::ZipReader(std::unique_ptr<void, Close> file, std::filesystem::path path)
    : file_(std::move(file)), path_(std::move(path)), buffer_(kLineMax) {}

Result<ZipReader> ZipReader::open(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    return make_error(ErrorCode::invalid_input, path.string() + ": is a folder; name a file");
  }
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return make_error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::invalid_input,
                      path.string() + ": cannot be read: " + reason());
  }
  gzbuffer(file, kBufferBytes);
  return ZipReader(std::unique_ptr<void, Close>(file), path);
}

std::string ZipReader::place() const {
  return path_.string() + ":" + std::to_string(line_);
}

/// More of the file behind what the buffer holds; false at its end.
Result<bool> ZipReader::fill() {
  std::move(buffer_.begin() + std::ptrdiff_t(begin_), buffer_.begin() + std::ptrdiff_t(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    return make_error(ErrorCode::invalid_input, place() + ": a line of more than " + std::to_string(kLineMax) + " bytes; is it a trace?");
  }
  const int got = gzread(as_gz(file_.get()), buffer_.data() + end_, unsigned(buffer_.size() - end_));
  int code = Z_OK;
  const char* text = gzerror(as_gz(file_.get()), &code);
  if (got < 0 || code != Z_OK) {
    return make_error(ErrorCode::corrupt, place() + ": the gzip stream is damaged or cut short (" +
                                              (code == Z_ERRNO ? std::strerror(errno) : text) + "); fetch the file again");
  }
  end_ += std::size_t(got);
  return got > 0;
}

Result<bool> ZipReader::next(std::string_view& line) {
  ++line_;
  for (std::size_t seen = 0;;) {
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    if (const auto length = rest.find('\n', seen); length != rest.npos) {
      line = rest.substr(0, length);
      begin_ += length + 1;
      break;
    }
    seen = rest.size();
    const auto more = fill();
    if (!more) return more;
    if (*more) continue;
    if (seen == 0) return false;
    line = std::string_view(buffer_.data(), end_);  // The file ends without the end of a line.
    begin_ = end_;
    break;
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void ZipWriter::Close::operator()(void* file) const {
  gzclose_w(as_gz(file));
}

ZipWriter::ZipWriter(std::unique_ptr<void, Close> file, std::filesystem::path path)
    : file_(std::move(file)), path_(std::move(path)) {}

ZipWriter::~ZipWriter() {
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(unfinished(path_), ignored);
}

Result<ZipWriter> ZipWriter::create(const std::filesystem::path& path) {
  errno = 0;
  gzFile file = gzopen(unfinished(path).c_str(), path.extension() == ".gz" ? "wb6" : "wbT");
  if (file == nullptr) {
    return make_error(ErrorCode::invalid_input, path.string() + ": cannot be written: " + reason());
  }
  gzbuffer(file, kBufferBytes);
  return ZipWriter(std::unique_ptr<void, Close>(file), path);
}

Error ZipWriter::failure() const {
  return make_error(ErrorCode::exhausted, path_.string() + ": cannot be written: " + reason());
}

Result<void> ZipWriter::write(std::string_view text) {
  errno = 0;
  if (gzwrite(as_gz(file_.get()), text.data(), unsigned(text.size())) != int(text.size())) return failure();
  return {};
}

Result<void> ZipWriter::finish() {
  errno = 0;
  const bool closed = gzclose_w(as_gz(file_.release())) == Z_OK;
  std::error_code problem;
  if (closed) std::filesystem::rename(unfinished(path_), path_, problem);
  if (closed && !problem) return {};
  const auto why = closed ? make_error(ErrorCode::exhausted, path_.string() + ": cannot be written: " + problem.message()) : failure();
  std::filesystem::remove(unfinished(path_), problem);
  return why;
}

}  // namespace sangam::sim
