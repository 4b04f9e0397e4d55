// Opening and mapping, with each refusal of the system turned into an error that names the remedy.
#include "storage/file/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace sangam {
namespace {

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

Error refused(const std::filesystem::path& path, const char* verb, int cause) {
  const std::string text =
      fmt::format("{}: cannot {}: {}", path.string(), verb, std::generic_category().message(cause));
  switch (cause) {
    case ENOENT:
    case ENOTDIR: return make_error(ErrorCode::not_found, text + "; check the path");
    case EACCES:
    case EPERM:
    case ELOOP: return make_error(ErrorCode::invalid_input, text + "; make it readable for this user");
    case EMFILE:
    case ENFILE:
    case ENOMEM: return make_error(ErrorCode::exhausted, text + "; raise the limit (ulimit -n, -v)");
    default: return make_error(ErrorCode::corrupt, text + "; check the disk");
  }
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) return refused(path, "open", errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return refused(path, "stat", errno);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::invalid_input,
                      path.string() + ": not a regular file (a folder, pipe, socket or device); give a file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile({});
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) return refused(path, "map", errno);
  return MappedFile({static_cast<const std::byte*>(memory), size});
}

Result<MappedFile> MappedFile::open_small(const std::filesystem::path& path, std::size_t size_max) {
  auto file = open(path);
  if (file && file->bytes().size() > size_max)
    return make_error(ErrorCode::corrupt,
                      fmt::format("{}: {} bytes, more than the {} that such a file may have", path.string(),
                                  file->bytes().size(), size_max));
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string_view MappedFile::text() const {
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
}

bool is_lfs_pointer(std::string_view text) {
  return text.starts_with("version https://git-lfs");
}

}  // namespace sangam
