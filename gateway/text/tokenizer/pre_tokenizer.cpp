// The steps of a pre-tokenizer: each finds cuts, and a behaviour says which side a match stays on.
#include "gateway/text/tokenizer/pre_tokenizer.hpp"

#include "gateway/text/unicode.hpp"

namespace sangam::text {
namespace {

struct Cut {
  Span span;
  bool match = false;
};

std::vector<Cut> cuts_of(const Regex& pattern, std::string_view text) {
  std::vector<Cut> cuts;
  std::size_t done = 0;
  for (const Span& match : pattern.matches(text)) {
    if (done < match.begin) cuts.push_back({{done, match.begin}, false});
    cuts.push_back({match, true});
    done = match.end;
  }
  if (done < text.size()) cuts.push_back({{done, text.size()}, false});
  return cuts;
}

/// Each character that `matches` is a match of its own.
template <class Predicate>
std::vector<Cut> cuts_at(std::string_view text, Predicate matches) {
  std::vector<Cut> cuts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const std::size_t end = at + step.size;
    if (matches(step.value)) {
      if (done < at) cuts.push_back({{done, at}, false});
      cuts.push_back({{at, end}, true});
      done = end;
    }
    at = end;
  }
  if (done < text.size()) cuts.push_back({{done, text.size()}, false});
  return cuts;
}

std::vector<Span> join_to_previous(const std::vector<Cut>& cuts) {
  std::vector<Span> spans;
  bool after_match = false;
  for (const Cut& cut : cuts) {
    if (cut.match && !after_match && !spans.empty()) {
      spans.back().end = cut.span.end;
    } else {
      spans.push_back(cut.span);
    }
    after_match = cut.match;
  }
  return spans;
}

std::vector<Span> join_to_next(const std::vector<Cut>& cuts) {
  std::vector<Span> reversed;
  bool before_match = false;
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    if (cut->match && !before_match && !reversed.empty()) {
      reversed.back().begin = cut->span.begin;
    } else {
      reversed.push_back(cut->span);
    }
    before_match = cut->match;
  }
  return {reversed.rbegin(), reversed.rend()};
}

std::vector<Span> join_neighbours(const std::vector<Cut>& cuts) {
  std::vector<Span> spans;
  bool last = false;
  for (const Cut& cut : cuts) {
    if (cut.match == last && !spans.empty()) {
      spans.back().end = cut.span.end;
    } else {
      spans.push_back(cut.span);
    }
    last = cut.match;
  }
  return spans;
}

std::vector<Span> arrange(const std::vector<Cut>& cuts, CutBehavior behavior) {
  switch (behavior) {
    case CutBehavior::merged_with_previous:
      return join_to_previous(cuts);
    case CutBehavior::merged_with_next:
      return join_to_next(cuts);
    case CutBehavior::contiguous:
      return join_neighbours(cuts);
    case CutBehavior::removed:
    case CutBehavior::isolated:
      break;
  }
  std::vector<Span> spans;
  spans.reserve(cuts.size());
  for (const Cut& cut : cuts) {
    if (!cut.match || behavior == CutBehavior::isolated) spans.push_back(cut.span);
  }
  return spans;
}

/// Replaces each piece by what `spans_of` finds in it; empty ones vanish.
template <class SpansOf>
void cut_each(Pieces& pieces, SpansOf spans_of) {
  std::vector<Piece> cut;
  for (const Piece& piece : pieces.list) {
    for (const Span& span : spans_of(piece.text)) {
      if (span.begin == span.end) continue;
      cut.push_back(
          {piece.text.substr(span.begin, span.end - span.begin), piece.opens_input && span.begin == 0});
    }
  }
  pieces.list = std::move(cut);
}

void rewrite(Pieces& pieces, Piece& piece, std::string text) {
  piece.text = pieces.rewritten.emplace_back(std::move(text));
}

void run(const PreTokenizer::Split& step, Pieces& pieces) {
  cut_each(pieces, [&step](std::string_view text) {
    std::vector<Cut> cuts = cuts_of(step.pattern, text);
    if (step.invert) {
      for (Cut& cut : cuts) cut.match = !cut.match;
    }
    return arrange(cuts, step.behavior);
  });
}

void run(const PreTokenizer::Digits& step, Pieces& pieces) {
  cut_each(pieces, [&step](std::string_view text) {
    return arrange(cuts_at(text, is_numeric),
                   step.individual ? CutBehavior::isolated : CutBehavior::contiguous);
  });
}

void run(const PreTokenizer::Punctuation& step, Pieces& pieces) {
  cut_each(pieces,
           [&step](std::string_view text) { return arrange(cuts_at(text, is_punctuation), step.behavior); });
}

void run(const PreTokenizer::WhitespaceSplit&, Pieces& pieces) {
  cut_each(pieces, [](std::string_view text) {
    return arrange(cuts_at(text, is_white_space), CutBehavior::removed);
  });
}

void run(const PreTokenizer::Whitespace&, Pieces& pieces) {
  run(PreTokenizer::WhitespaceSplit{}, pieces);
  cut_each(pieces, [](std::string_view text) { return join_neighbours(cuts_at(text, is_word)); });
}

void run(const PreTokenizer::Metaspace& step, Pieces& pieces) {
  using Prepend = PreTokenizer::Metaspace::Prepend;
  std::string mark;
  append_utf8(mark, step.replacement);
  for (Piece& piece : pieces.list) {
    const bool wanted =
        step.prepend == Prepend::always || (step.prepend == Prepend::first && piece.opens_input);
    const bool has_mark = piece.text.starts_with(mark) || piece.text.starts_with(' ');
    std::string text = wanted && !has_mark ? mark : std::string();
    for (const char c : piece.text) c == ' ' ? text += mark : text += c;
    rewrite(pieces, piece, std::move(text));
  }
  if (!step.split) return;
  cut_each(pieces, [&step](std::string_view text) {
    const auto is_mark = [&step](char32_t c) { return c == step.replacement; };
    return arrange(cuts_at(text, is_mark), CutBehavior::merged_with_next);
  });
}

void run(const PreTokenizer::ByteLevel& step, Pieces& pieces) {
  if (step.add_prefix_space) {
    for (Piece& piece : pieces.list) {
      if (!piece.text.starts_with(' ')) rewrite(pieces, piece, " " + std::string(piece.text));
    }
  }
  if (!step.pattern) return;
  cut_each(pieces, [&step](std::string_view text) {
    return arrange(cuts_of(*step.pattern, text), CutBehavior::isolated);
  });
}

}  // namespace

Pieces PreTokenizer::apply(Piece whole) const {
  Pieces pieces;
  if (!whole.text.empty()) pieces.list.push_back(whole);
  for (const Step& step : steps_) {
    std::visit([&pieces](const auto& kind) { run(kind, pieces); }, step);
  }
  return pieces;
}

bool PreTokenizer::byte_level() const {
  return !steps_.empty() && std::holds_alternative<ByteLevel>(steps_.back());
}

}  // namespace sangam::text
