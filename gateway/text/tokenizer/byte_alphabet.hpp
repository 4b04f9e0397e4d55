// The alphabet of byte-level vocabularies: 256 printable characters that stand for the bytes (GPT-2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sangam::text {

/// The bytes that `token` spells, or nothing if one of its characters is not a letter of the alphabet.
[[nodiscard]] std::optional<std::string> bytes_spelled(std::string_view token);

}  // namespace sangam::text
