// Tokenizer::load: from the files of a model folder to the parts.
#include <boost/json.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "gateway/text/tokenizer/load_components.hpp"

namespace sangam {
namespace text {
namespace {

/// Far above any vocabulary that is in use (the largest have about 2^18 tokens).
constexpr std::uint64_t kIdLimit = std::uint64_t{1} << 24;

TokenId read_id(const JsonPlace& place) {
  const std::uint64_t id = place.unsigned_integer();
  if (id >= kIdLimit)
    place.refuse("the id " + std::to_string(id) + " is not below the limit of " + std::to_string(kIdLimit));
  return static_cast<TokenId>(id);
}

std::vector<std::pair<std::string, TokenId>> read_vocabulary(const JsonPlace& place) {
  std::vector<std::pair<std::string, TokenId>> vocabulary;
  vocabulary.reserve(place.object().size());
  for (const auto& entry : place.object()) {
    const std::string spelling(entry.key().data(), entry.key().size());
    const std::int64_t* id = entry.value().if_int64();
    const bool valid = id != nullptr && *id >= 0 && *id < static_cast<std::int64_t>(kIdLimit);
    vocabulary.emplace_back(spelling, valid ? static_cast<TokenId>(*id)
                                            : read_id(JsonPlace(entry.value(), "model.vocab." + spelling)));
  }
  return vocabulary;
}

std::pair<std::string, std::string> read_merge(const JsonPlace& place) {
  if (place.is_string()) {
    const std::string text = place.string();
    const auto blank = text.find(' ');
    if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos) {
      place.refuse("\"" + text + "\" is not two tokens with one blank between them");
    }
    return {text.substr(0, blank), text.substr(blank + 1)};
  }
  const auto parts = place.items();
  if (parts.size() != 2) place.refuse("a merge has two tokens, found " + std::to_string(parts.size()));
  return {parts[0].string(), parts[1].string()};
}

/// What nearly all of the hundreds of thousands are: read without noting where each stands.
std::optional<std::pair<std::string, std::string>> read_plain_merge(const boost::json::value& merge) {
  const boost::json::array* parts = merge.if_array();
  if (parts == nullptr || parts->size() != 2) return std::nullopt;
  const boost::json::string* left = parts->front().if_string();
  const boost::json::string* right = parts->back().if_string();
  if (left == nullptr || right == nullptr) return std::nullopt;
  return std::pair(std::string(left->data(), left->size()), std::string(right->data(), right->size()));
}

std::vector<std::pair<std::string, std::string>> read_merges(const JsonPlace& place) {
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(place.array().size());
  for (std::size_t i = 0; i < place.array().size(); ++i) {
    if (auto merge = read_plain_merge(place.array()[i])) {
      merges.push_back(*std::move(merge));
      continue;
    }
    const JsonPlace item = place.item(i);
    if (item.is_string() && item.string().starts_with("#version")) continue;
    merges.push_back(read_merge(item));
  }
  return merges;
}

BpeModel read_model(const JsonPlace& place, bool byte_level) {
  if (place.string_or("type", "BPE") != "BPE") refuse_component(place, "BPE");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!place.string_or(affix, "").empty()) place.at(affix).refuse("is not supported unless empty");
  }
  if (const auto dropout = place.find("dropout")) dropout->refuse("dropout is for training; remove it");
  BpeModel model;
  model.vocabulary = read_vocabulary(place.at("vocab"));
  model.merges = read_merges(place.at("merges"));
  if (const auto unknown = place.find("unk_token")) model.unknown = unknown->string();
  model.fuse_unknown = place.boolean_or("fuse_unk", false);
  model.byte_fallback = place.boolean_or("byte_fallback", false);
  model.ignore_merges = place.boolean_or("ignore_merges", false);
  model.byte_level = byte_level;
  return model;
}

AddedToken read_added_token(const JsonPlace& place, TokenId id) {
  return {id,
          place.at("content").string(),
          place.boolean_or("single_word", false),
          place.boolean_or("lstrip", false),
          place.boolean_or("rstrip", false),
          place.boolean_or("normalized", false),
          place.boolean_or("special", false)};
}

/// Those of tokenizer.json first; tokenizer_config.json may know more.
class PartsReader {
 public:
  PartsReader(JsonPlace tokenizer, JsonPlace config)
      : tokenizer_(std::move(tokenizer)), config_(std::move(config)) {}

  std::unique_ptr<TokenizerParts> read() {
    if (const auto place = tokenizer_.find("normalizer")) parts_->normalizer = read_normalizer(*place);
    if (const auto place = tokenizer_.find("pre_tokenizer"))
      parts_->pre_tokenizer = read_pre_tokenizer(*place);
    if (const auto place = tokenizer_.find("post_processor")) parts_->frame = read_post_processor(*place);
    const auto decoder = tokenizer_.find("decoder");
    parts_->decoder = decoder ? read_decoder(*decoder) : TokenDecoder({TokenDecoder::Spaced{}}, {});
    parts_->byte_fallback = parts_->decoder.byte_fallback();
    read_bpe(tokenizer_.at("model"));
    read_added_tokens();
    check_frame();
    spell_bytes();
    return std::move(parts_);
  }

 private:
  void read_bpe(const JsonPlace& place) {
    const BpeModel model = read_model(place, parts_->pre_tokenizer.byte_level());
    Result<Bpe> bpe = Bpe::make(model);
    if (!bpe) place.refuse(bpe.error().context);
    parts_->bpe = *std::move(bpe);
    parts_->ids.reserve(model.vocabulary.size());
    for (const auto& [spelling, id] : model.vocabulary) enter(spelling, id, place);
  }

  TokenEntry& enter(const std::string& spelling, TokenId id, const JsonPlace& place) {
    if (id >= parts_->tokens.size()) parts_->tokens.resize(id + 1);
    TokenEntry& entry = parts_->tokens[id];
    const auto [known, is_new] = parts_->ids.emplace(spelling, id);
    if ((entry.known && entry.spelling != spelling) || known->second != id) {
      place.refuse("the token \"" + spelling + "\" with id " + std::to_string(id) + " clashes with \"" +
                   (entry.known ? entry.spelling : spelling) + "\", which has id " +
                   std::to_string(entry.known ? id : known->second));
    }
    entry.spelling = spelling;
    entry.known = true;
    return entry;
  }

  void read_added_tokens() {
    if (const auto added = tokenizer_.find("added_tokens")) {
      for (const JsonPlace& item : added->items()) add(read_added_token(item, read_id(item.at("id"))), item);
    }
    const auto more = config_.find("added_tokens_decoder");
    if (!more) return;
    for (const auto& entry : more->object()) {
      const std::string key(entry.key().data(), entry.key().size());
      const JsonPlace item(entry.value(), "tokenizer_config.json: added_tokens_decoder." + key);
      if (key.empty() || key.size() > 8 || key.find_first_not_of("0123456789") != std::string::npos) {
        item.refuse("the key is not a token's id");
      }
      const AddedToken token = read_added_token(item, static_cast<TokenId>(std::stoul(key)));
      if (token.id >= kIdLimit) item.refuse("the id is not below the limit of " + std::to_string(kIdLimit));
      if (!added_.contains(token.content)) add(token, item);
    }
  }

  void add(const AddedToken& token, const JsonPlace& place) {
    if (token.content.empty()) return;
    TokenEntry& entry = enter(token.content, token.id, place);
    entry.special = entry.special || token.special;
    if (!added_.insert(token.content).second) return;
    if (token.normalized) {
      parts_->normalized_tokens.add(token, parts_->normalizer.apply(token.content));
    } else {
      parts_->raw_tokens.add(token, token.content);
    }
  }

  void check_frame() {
    for (const auto* side : {&parts_->frame.before, &parts_->frame.after}) {
      for (const TokenId id : *side) {
        if (id < parts_->tokens.size() && parts_->tokens[id].known) continue;
        tokenizer_.at("post_processor")
            .refuse("adds the token " + std::to_string(id) + ", which does not exist");
      }
    }
  }

  void spell_bytes() {
    for (TokenEntry& entry : parts_->tokens) {
      if (entry.known) entry.bytes = parts_->decoder.bytes(entry.spelling, false);
    }
  }

  JsonPlace tokenizer_;
  JsonPlace config_;
  std::unique_ptr<TokenizerParts> parts_ = std::make_unique<TokenizerParts>();
  std::set<std::string> added_;
};

std::optional<std::string> role_text(const JsonPlace& config, const std::string& role) {
  const auto place = config.find(role);
  if (!place) return std::nullopt;
  return place->is_string() ? place->string() : place->at("content").string();
}

std::vector<Tokenizer::RoleToken> read_roles(const JsonPlace& config, const JsonPlace& map,
                                             const TokenizerParts& parts) {
  std::vector<Tokenizer::RoleToken> roles;
  for (const char* role :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    auto text = role_text(config, role);
    if (!text) text = role_text(map, role);
    if (!text) continue;
    const auto id = parts.ids.find(*text);
    roles.push_back({role, *text, id == parts.ids.end() ? std::nullopt : std::optional(id->second)});
  }
  return roles;
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

boost::json::value read_optional(const std::filesystem::path& path) {
  const auto text = read_file(path);
  return text ? parse_json(*text, path.filename().string()) : boost::json::value(boost::json::object());
}

std::unique_ptr<TokenizerParts> read_folder(const std::filesystem::path& folder,
                                            const std::string& tokenizer_text) {
  const boost::json::value tokenizer = parse_json(tokenizer_text, "tokenizer.json");
  const boost::json::value config = read_optional(folder / "tokenizer_config.json");
  const boost::json::value map = read_optional(folder / "special_tokens_map.json");
  const JsonPlace config_place(config, "tokenizer_config.json");
  auto parts = PartsReader(JsonPlace(tokenizer, "tokenizer.json"), config_place).read();
  parts->roles = read_roles(config_place, JsonPlace(map, "special_tokens_map.json"), *parts);
  return parts;
}

}  // namespace
}  // namespace text

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::filesystem::path& folder) {
  const auto text = text::read_file(folder / "tokenizer.json");
  if (!text) {
    return make_error(ErrorCode::not_found, (folder / "tokenizer.json").string() +
                                                " cannot be read; a model folder needs its tokenizer");
  }
  try {
    return std::make_unique<Tokenizer>(text::read_folder(folder, *text));
  } catch (const text::Malformed& malformed) {
    return make_error(ErrorCode::corrupt, (folder / malformed.what()).string());
  }
}

}  // namespace sangam
