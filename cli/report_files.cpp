// A file that could be opened at the start may still be on a full disk at the end: both are told.
#include "cli/report_files.hpp"

#include <filesystem>
#include <fstream>

namespace sangam {

Result<void> check_writable(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) {
    if (path.empty() || std::ofstream(path, std::ios::app)) continue;
    return make_error(ErrorCode::invalid_input, path + ": cannot be written; name another file");
  }
  return {};
}

Result<void> write_whole(const std::string& path, const std::string& content) {
  const std::string draft = path + ".part";
  std::error_code failure;
  auto written = write_report(draft, content);
  if (written) std::filesystem::rename(draft, path, failure);
  if (written && !failure) return {};
  std::error_code ignored;
  std::filesystem::remove(draft, ignored);
  if (!written) return written;
  return make_error(ErrorCode::invalid_input, path + ": cannot be written: " + failure.message());
}

Result<void> write_report(const std::string& path, const std::string& content) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary);
  file << content << (content.ends_with('\n') ? "" : "\n") << std::flush;
  if (file) return {};
  return make_error(ErrorCode::exhausted, path + ": cannot be written to its end; is the disk full?");
}

}  // namespace sangam
