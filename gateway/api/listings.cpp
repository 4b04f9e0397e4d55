// The JSON of models and of tokenization, and bytes made fit for JSON.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "gateway/api/replies.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

json::object model_object(const ModelListing& listing, std::int64_t created) {
  return {{"id", listing.name},
          {"object", "model"},
          {"created", created},
          {"owned_by", "sangam"},
          {"root", listing.model->id.text()},
          {"parent", nullptr},
          {"max_model_len", listing.model->context.count()},
          {"status", listing.state}};
}

constexpr bool is_tail(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// Length of the well-formed code point at the front of `bytes`, or 0 (Unicode, table 3-7).
std::size_t code_point_size(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xC2 && lead < 0xE0   ? 2
                           : lead >= 0xE0 && lead < 0xF0 ? 3
                           : lead >= 0xF0 && lead < 0xF5 ? 4
                                                         : 0;
  if (size == 0 || bytes.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_tail(bytes[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(bytes[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
  return overlong || beyond ? 0 : size;
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t size = code_point_size(bytes);
    text += size == 0 ? std::string_view("\xEF\xBF\xBD") : bytes.substr(0, size);
    bytes.remove_prefix(size == 0 ? 1 : size);
  }
  return text;
}

std::string model_json(const ModelListing& listing, std::int64_t created) {
  return json::serialize(model_object(listing, created));
}

std::string models_json(const std::vector<ModelListing>& listings, std::int64_t created) {
  json::array data;
  for (const ModelListing& listing : listings) data.push_back(model_object(listing, created));
  return json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}});
}

std::string tokenize_json(const std::vector<TokenId>& tokens, Tokens context,
                          const std::vector<std::string>* texts) {
  json::object answer{{"count", tokens.size()}, {"max_model_len", context.count()}};
  answer["tokens"] = json::array(tokens.begin(), tokens.end());
  answer["token_strs"] = nullptr;
  if (texts != nullptr) answer["token_strs"] = json::array(texts->begin(), texts->end());
  return json::serialize(answer);
}

std::string detokenize_json(std::string_view text) {
  return json::serialize(json::object{{"prompt", printable(text)}});
}

}  // namespace sangam
