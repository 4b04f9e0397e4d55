// A text file that may be compressed with gzip, read and written line by line.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam::sim {

/// Reads plain text, too: zlib tells the two apart by their first bytes.
class ZipReader {
 public:
  [[nodiscard]] static Result<ZipReader> open(const std::filesystem::path& path);

  /// The next line without its end, in `line` until the next call; false at the end of the file. Lines are at most
  /// 1 MiB long.
  [[nodiscard]] Result<bool> next(std::string_view& line);
  /// "path:line" of the last line read, counted from 1.
  [[nodiscard]] std::string place() const;

 private:
  struct Close {
    void operator()(void* file) const;
  };
  ZipReader(std::unique_ptr<void, Close> file, std::filesystem::path path);
  Result<bool> fill();

  std::unique_ptr<void, Close> file_;
  std::filesystem::path path_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< What of the buffer is not handed out yet: [begin_, end_).
  std::size_t end_ = 0;
  std::size_t line_ = 0;
};

class ZipWriter {
 public:
  /// Writes beside `path` and takes its place in `finish()`; without that, nothing is left. Compresses where the name
  /// ends in `.gz`.
  [[nodiscard]] static Result<ZipWriter> create(const std::filesystem::path& path);
  ZipWriter(ZipWriter&&) = default;
  ZipWriter& operator=(ZipWriter&&) = delete;
  ~ZipWriter();

  [[nodiscard]] Result<void> write(std::string_view text);
  [[nodiscard]] Result<void> finish();

 private:
  struct Close {
    void operator()(void* file) const;
  };
  ZipWriter(std::unique_ptr<void, Close> file, std::filesystem::path path);
  Error failure() const;

  std::unique_ptr<void, Close> file_;
  std::filesystem::path path_;
};

}  // namespace sangam::sim
