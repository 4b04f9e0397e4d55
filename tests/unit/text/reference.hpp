// Reading the reference data of tests/data/text, and temporary folders for files that tests change.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gateway/text/tokenizer.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::reference {

using Json = nlohmann::json;

inline std::filesystem::path folder(const std::string& name) {
  return std::filesystem::path(SANGAM_SOURCE_DIR) / "tests/data/text" / name;
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  SANGAM_ASSERT(file.good(), path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

inline Json read_json(const std::filesystem::path& path) {
  return Json::parse(read(path));
}

inline void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A folder that vanishes with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sangam-text-XXXXXX").string();
    SANGAM_ASSERT(mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The tokenizer that `tokenizer_json` describes.
inline Result<std::unique_ptr<Tokenizer>> load_text(const std::string& tokenizer_json,
                                                    const std::string& config = "{}") {
  TemporaryFolder folder;
  write(folder.path() / "tokenizer.json", tokenizer_json);
  write(folder.path() / "tokenizer_config.json", config);
  return Tokenizer::load(folder.path());
}

inline std::vector<TokenId> ids(const Json& list) {
  return list.get<std::vector<TokenId>>();
}

}  // namespace sangam::reference
