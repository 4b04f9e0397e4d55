// A template's characters as tokens: the text between the tags, and what stands within them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sangam::jinja {

struct Token {
  enum class Kind {
    text,
    block_begin,
    block_end,
    variable_begin,
    variable_end,
    name,
    string,
    integer,
    real,
    sign,
    end
  };
  Kind kind = Kind::end;
  std::string text;  ///< Of a string: its content, escapes resolved.
  int line = 1;
};

/// With trim_blocks and lstrip_blocks, as chat templates are read. Throws TemplateSyntaxError.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace sangam::jinja
