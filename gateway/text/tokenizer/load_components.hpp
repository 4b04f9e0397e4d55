// The parts of `tokenizer.json` that are lists of typed steps. Unknown types are refused by name.
#pragma once

#include "gateway/text/tokenizer/json_place.hpp"
#include "gateway/text/tokenizer/parts.hpp"

namespace sangam::text {

[[nodiscard]] Normalizer read_normalizer(const JsonPlace& place);
[[nodiscard]] PreTokenizer read_pre_tokenizer(const JsonPlace& place);
[[nodiscard]] TokenDecoder read_decoder(const JsonPlace& place);
[[nodiscard]] PromptFrame read_post_processor(const JsonPlace& place);

/// `{"Regex": ...}` or `{"String": ...}`.
[[nodiscard]] Regex read_pattern(const JsonPlace& place);

/// Refuses the `type` at `place`; `supported` is said to the reader.
[[noreturn]] void refuse_component(const JsonPlace& place, const std::string& supported);

/// The single character of a string.
[[nodiscard]] char32_t read_character(const JsonPlace& place);

}  // namespace sangam::text
