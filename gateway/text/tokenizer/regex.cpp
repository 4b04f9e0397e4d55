// PCRE2 with UTF, Unicode properties and JIT.
#include "gateway/text/tokenizer/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <limits>
#include <new>
#include <optional>

#include "gateway/text/unicode.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::text {

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code;
};

namespace {

/// What one thread needs to match: made once, grows with the hardest match seen.
class Matcher {
 public:
  Matcher() {
    SANGAM_ASSERT(context_ != nullptr && stack_ != nullptr && data_ != nullptr);
    pcre2_jit_stack_assign(context_, nullptr, stack_);
    // Patterns come with the model, not from clients; they may backtrack over a long run of blanks.
    pcre2_set_match_limit(context_, std::numeric_limits<uint32_t>::max());
    pcre2_set_depth_limit(context_, std::numeric_limits<uint32_t>::max());
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  ~Matcher() {
    pcre2_match_data_free(data_);
    pcre2_jit_stack_free(stack_);
    pcre2_match_context_free(context_);
  }

  std::optional<Span> find(const pcre2_code* code, std::string_view text, std::size_t from) {
    int found = match(code, text, from, PCRE2_NO_UTF_CHECK);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = match(code, text, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found == PCRE2_ERROR_NOMEMORY || found == PCRE2_ERROR_HEAPLIMIT) throw std::bad_alloc();
    SANGAM_ASSERT(found >= 0, found, from, text.size());
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_);
    return Span{ends[0], ends[1]};
  }

 private:
  static constexpr std::size_t kStackFirst = 32 << 10;
  static constexpr std::size_t kStackLimit = 8 << 20;  // Reserved, not touched, until a match needs it.

  int match(const pcre2_code* code, std::string_view text, std::size_t from, uint32_t options) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    return pcre2_match(code, subject, text.size(), from, options, data_, context_);
  }

  pcre2_match_context* context_ = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack_ = pcre2_jit_stack_create(kStackFirst, kStackLimit, nullptr);
  // Groups beyond the whole match are not asked for, so one pair is enough for every pattern.
  pcre2_match_data* data_ = pcre2_match_data_create(1, nullptr);
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern) {
  const Result<std::string> translated = pcre2_syntax(pattern);
  if (!translated) return translated.error();
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Ruby's ^ and $ always mean lines.
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, nullptr);
  if (code == nullptr) {
    return make_error(ErrorCode::invalid_input, "regular expression " + *translated + " is refused at byte " +
                                                    std::to_string(offset) + ": " + message_of(error));
  }
  // Where the system forbids executable memory this fails, and matching interprets: slower, same results.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Regex(std::make_shared<const Code>(code));
}

std::vector<Span> Regex::matches(std::string_view text) const {
  thread_local Matcher matcher;
  std::vector<Span> found;
  for (std::size_t from = 0; from <= text.size();) {
    const auto match = matcher.find(code_->code, text, from);
    if (!match) break;
    const bool empty = match->begin == match->end;
    if (!empty || found.empty() || found.back().end != match->begin) found.push_back(*match);
    from = match->end;
    if (empty) from += from < text.size() ? utf8_size(text[from]) : 1;
  }
  return found;
}

}  // namespace sangam::text
