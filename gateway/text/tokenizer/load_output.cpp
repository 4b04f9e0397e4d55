// Decoders and post-processors.
#include "gateway/text/tokenizer/load_components.hpp"

namespace sangam::text {
namespace {

/// Collects the steps of a decoder and knows whether tokens are still apart.
class DecoderReader {
 public:
  void read(const JsonPlace& place) {
    const std::string type = place.at("type").string();
    if (type == "Sequence") {
      for (const JsonPlace& item : place.at("decoders").items()) read(item);
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Strip") {
      strip(place);
    } else if (fused_) {
      place.refuse("a " + type + " behind Fuse is not supported; only Strip is");
    } else {
      read_step(place, type);
    }
  }

  [[nodiscard]] TokenDecoder finish() { return TokenDecoder(std::move(steps_), text_start_); }

 private:
  void read_step(const JsonPlace& place, const std::string& type) {
    if (type == "ByteLevel") {
      steps_.emplace_back(TokenDecoder::ByteLevel{});
    } else if (type == "ByteFallback") {
      steps_.emplace_back(TokenDecoder::ByteFallback{});
    } else if (type == "Replace") {
      steps_.emplace_back(
          TokenDecoder::Replace{read_pattern(place.at("pattern")), place.at("content").string()});
    } else if (type == "Metaspace") {
      metaspace(place);
    } else {
      refuse_component(place, "Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace");
    }
  }

  void strip(const JsonPlace& place) {
    (void)read_character(place.at("content"));
    const TokenDecoder::Strip step{place.at("content").string(), place.at("start").unsigned_integer(),
                                   place.at("stop").unsigned_integer()};
    if (!fused_) {
      steps_.emplace_back(step);
    } else if (step.stop > 0) {
      place.refuse("a Strip behind Fuse with stop > 0 is not supported: a stream cannot take back its end");
    } else if (text_start_.start > 0) {
      place.refuse("a second Strip behind Fuse is not supported");
    } else {
      text_start_ = step;
    }
  }

  void metaspace(const JsonPlace& place) {
    TokenDecoder::Metaspace step{place.string_or("replacement", "\xE2\x96\x81"), true};
    step.prepended = place.find("prepend_scheme") ? place.at("prepend_scheme").string() != "never"
                                                  : place.boolean_or("add_prefix_space", true);
    steps_.emplace_back(std::move(step));
  }

  std::vector<TokenDecoder::Step> steps_;
  TokenDecoder::Strip text_start_;
  bool fused_ = false;
};

std::vector<TokenId> ids_of(const JsonPlace& specials, const std::string& name) {
  std::vector<TokenId> ids;
  for (const JsonPlace& id : specials.at(name).at("ids").items()) {
    ids.push_back(static_cast<TokenId>(id.unsigned_integer()));
  }
  return ids;
}

PromptFrame read_template(const JsonPlace& place) {
  PromptFrame frame;
  bool text_seen = false;
  for (const JsonPlace& item : place.at("single").items()) {
    if (item.find("Sequence")) {
      if (text_seen) item.refuse("a template that repeats its text is not supported");
      text_seen = true;
      continue;
    }
    const auto ids = ids_of(place.at("special_tokens"), item.at("SpecialToken").at("id").string());
    auto& side = text_seen ? frame.after : frame.before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!text_seen) place.at("single").refuse("the template has no place for the text");
  return frame;
}

}  // namespace

TokenDecoder read_decoder(const JsonPlace& place) {
  DecoderReader reader;
  reader.read(place);
  return reader.finish();
}

PromptFrame read_post_processor(const JsonPlace& place) {
  const std::string type = place.at("type").string();
  if (type == "ByteLevel") return {};  // It moves offsets, which nobody here asks for.
  if (type == "TemplateProcessing") return read_template(place);
  if (type != "Sequence") refuse_component(place, "Sequence, TemplateProcessing, ByteLevel");
  PromptFrame whole;
  for (const JsonPlace& item : place.at("processors").items()) {
    const PromptFrame outer = read_post_processor(item);
    whole.before.insert(whole.before.begin(), outer.before.begin(), outer.before.end());
    whole.after.insert(whole.after.end(), outer.after.begin(), outer.after.end());
  }
  return whole;
}

}  // namespace sangam::text
