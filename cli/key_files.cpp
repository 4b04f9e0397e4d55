// Key files: one line, the secret key in Z85.
#include "cli/key_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <system_error>

#include "messages/mesh/keys.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder, const std::string& node) { return folder / (node + ".key"); }

Error wrong(const fs::path& file, const std::string& why) { return make_error(ErrorCode::invalid_input, file.string() + ": " + why); }

std::string last_error() { return std::generic_category().message(errno); }

/// Closes on the way out.
struct OpenFile {
  explicit OpenFile(int number_in) : number(number_in) {}
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number;
};

Result<std::string> read_secret(const fs::path& path) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0) return wrong(path, last_error() + "; `sangam keygen` makes keys");
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return wrong(path, last_error());
  if (!S_ISREG(status.st_mode)) return wrong(path, "not a file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) return wrong(path, "others than its owner may use it; chmod 600 it");
  constexpr std::size_t kMost = 256;
  std::string text(kMost, '\0');
  const ssize_t size = ::read(file.number, text.data(), text.size());
  if (size < 0) return wrong(path, last_error());
  text.resize(std::size_t(size));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

Result<std::optional<MeshKeys>> read_keys(const MeshConfig& config, const NodeConfig& node) {
  if (config.keys.empty()) return std::optional<MeshKeys>();
  const fs::path path = file_of(config.keys, node.name.text());
  const auto secret = read_secret(path);
  if (!secret) return secret.error();
  auto keys = mesh_keys_of(*secret);
  if (!keys) return wrong(path, keys.error().context);
  if (keys->public_key != node.public_key) {
    return wrong(path, "not the key of node " + node.name.text() + ", whose 'public_key' in " + config.source + " is " +
                           node.public_key + "; this one's is " + keys->public_key);
  }
  return std::optional<MeshKeys>(std::move(*keys));
}

Result<void> make_keys(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.empty() || name.find('/') != std::string::npos)
      return make_error(ErrorCode::invalid_input, "'" + name + "' is no name of a node for a key file");
    const MeshKeys keys = new_mesh_keys();
    const fs::path path = file_of(folder, name);
    const OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.number < 0) return wrong(path, last_error());
    const std::string line = keys.secret_key + "\n";
    if (::write(file.number, line.data(), line.size()) != ssize_t(line.size())) return wrong(path, last_error());
    std::cout << "# [[node]] name = \"" << name << "\"\npublic_key = \"" << keys.public_key << "\"" << std::endl;
  }
  return {};
}

}  // namespace sangam
