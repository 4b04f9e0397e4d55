// Normalizers and pre-tokenizers.
#include "gateway/text/tokenizer/load_components.hpp"

#include <map>

namespace sangam::text {
namespace {

Regex compiled(const JsonPlace& place, const std::string& pattern) {
  Result<Regex> regex = Regex::compile(pattern);
  if (!regex) place.refuse(regex.error().context);
  return *regex;
}

/// Of GPT-2, for ByteLevel steps that cut by themselves.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

CutBehavior read_behavior(const JsonPlace& place) {
  static const std::map<std::string, CutBehavior> kBehaviors{
      {"Removed", CutBehavior::removed},
      {"Isolated", CutBehavior::isolated},
      {"MergedWithPrevious", CutBehavior::merged_with_previous},
      {"MergedWithNext", CutBehavior::merged_with_next},
      {"Contiguous", CutBehavior::contiguous},
  };
  const auto found = kBehaviors.find(place.string());
  if (found == kBehaviors.end()) place.refuse("the behaviour " + place.string() + " is not known");
  return found->second;
}

void read_normalizer_into(const JsonPlace& place, std::vector<Normalizer::Step>& steps) {
  const std::string type = place.at("type").string();
  if (type == "Sequence") {
    for (const JsonPlace& item : place.at("normalizers").items()) read_normalizer_into(item, steps);
  } else if (type == "NFC") {
    steps.emplace_back(Normalizer::ToForm{NormalForm::nfc});
  } else if (type == "NFD") {
    steps.emplace_back(Normalizer::ToForm{NormalForm::nfd});
  } else if (type == "NFKC") {
    steps.emplace_back(Normalizer::ToForm{NormalForm::nfkc});
  } else if (type == "NFKD") {
    steps.emplace_back(Normalizer::ToForm{NormalForm::nfkd});
  } else if (type == "Lowercase") {
    steps.emplace_back(Normalizer::Lowercase{});
  } else if (type == "Prepend") {
    steps.emplace_back(Normalizer::Prepend{place.at("prepend").string()});
  } else if (type == "Replace") {
    steps.emplace_back(Normalizer::Replace{read_pattern(place.at("pattern")), place.at("content").string()});
  } else if (type == "Strip") {
    steps.emplace_back(
        Normalizer::Strip{place.boolean_or("strip_left", true), place.boolean_or("strip_right", true)});
  } else {
    refuse_component(place, "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip");
  }
}

PreTokenizer::Metaspace read_metaspace(const JsonPlace& place) {
  using Prepend = PreTokenizer::Metaspace::Prepend;
  static const std::map<std::string, Prepend> kSchemes{
      {"always", Prepend::always}, {"first", Prepend::first}, {"never", Prepend::never}};
  PreTokenizer::Metaspace step;
  if (const auto mark = place.find("replacement")) step.replacement = read_character(*mark);
  step.split = place.boolean_or("split", true);
  if (const auto scheme = place.find("prepend_scheme")) {
    const auto found = kSchemes.find(scheme->string());
    if (found == kSchemes.end()) scheme->refuse("the scheme " + scheme->string() + " is not known");
    step.prepend = found->second;
  } else if (!place.boolean_or("add_prefix_space", true)) {
    step.prepend = Prepend::never;
  }
  return step;
}

PreTokenizer::ByteLevel read_byte_level(const JsonPlace& place) {
  PreTokenizer::ByteLevel step{place.boolean_or("add_prefix_space", true), std::nullopt};
  if (place.boolean_or("use_regex", true)) step.pattern = compiled(place, std::string(kByteLevelPattern));
  return step;
}

PreTokenizer::Split read_split(const JsonPlace& place) {
  return {read_pattern(place.at("pattern")), read_behavior(place.at("behavior")),
          place.boolean_or("invert", false)};
}

CutBehavior read_behavior_or_isolated(const JsonPlace& place) {
  const auto behavior = place.find("behavior");
  return behavior ? read_behavior(*behavior) : CutBehavior::isolated;
}

void read_pre_tokenizer_into(const JsonPlace& place, std::vector<PreTokenizer::Step>& steps) {
  const std::string type = place.at("type").string();
  if (type == "Sequence") {
    for (const JsonPlace& item : place.at("pretokenizers").items()) read_pre_tokenizer_into(item, steps);
    return;
  }
  if (!steps.empty() && std::holds_alternative<PreTokenizer::ByteLevel>(steps.back())) {
    place.refuse("a step behind ByteLevel is not supported; ByteLevel must be the last");
  }
  if (type == "ByteLevel") {
    steps.emplace_back(read_byte_level(place));
  } else if (type == "Split") {
    steps.emplace_back(read_split(place));
  } else if (type == "Digits") {
    steps.emplace_back(PreTokenizer::Digits{place.boolean_or("individual_digits", false)});
  } else if (type == "Punctuation") {
    steps.emplace_back(PreTokenizer::Punctuation{read_behavior_or_isolated(place)});
  } else if (type == "Metaspace") {
    steps.emplace_back(read_metaspace(place));
  } else if (type == "Whitespace") {
    steps.emplace_back(PreTokenizer::Whitespace{});
  } else if (type == "WhitespaceSplit") {
    steps.emplace_back(PreTokenizer::WhitespaceSplit{});
  } else {
    refuse_component(
        place, "Sequence, ByteLevel, Split, Digits, Punctuation, Metaspace, Whitespace, WhitespaceSplit");
  }
}

}  // namespace

void refuse_component(const JsonPlace& place, const std::string& supported) {
  place.at("type").refuse(place.at("type").string() + " is not supported; supported are " + supported);
}

Regex read_pattern(const JsonPlace& place) {
  if (const auto regex = place.find("Regex")) return compiled(*regex, regex->string());
  const JsonPlace literal = place.at("String");
  return compiled(literal, regex_escape(literal.string()));
}

char32_t read_character(const JsonPlace& place) {
  const std::string text = place.string();
  if (text.empty() || utf8_size(text.front()) != text.size())
    place.refuse("expected one character, found \"" + text + "\"");
  return utf8_step(text, 0).value;
}

Normalizer read_normalizer(const JsonPlace& place) {
  std::vector<Normalizer::Step> steps;
  read_normalizer_into(place, steps);
  return Normalizer(std::move(steps));
}

PreTokenizer read_pre_tokenizer(const JsonPlace& place) {
  std::vector<PreTokenizer::Step> steps;
  read_pre_tokenizer_into(place, steps);
  return PreTokenizer(std::move(steps));
}

}  // namespace sangam::text
