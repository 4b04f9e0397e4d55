// Entries are JSON objects with a version, so that `ldb` shows them and later versions can add fields.
#include "storage/store/catalog.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "storage/json/json_fields.hpp"

namespace sangam {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr Limits<std::int64_t> kNatural = {0, INT64_MAX};

std::int64_t unix_millis(UnixTime time) {
  return time.time_since_epoch().count();
}
UnixTime unix_time(std::int64_t millis) {
  return UnixTime(std::chrono::milliseconds(millis));
}

std::string encode(const CatalogEntry& entry) {
  boost::json::object object = {
      {"version", kVersion},
      {"folder", entry.folder},
      {"weights_digest", hex_of(entry.weights)},
      {"config_digest", hex_of(entry.config)},
      {"weight_bytes", entry.bytes.count()},
      {"first_seen_unix_ms", unix_millis(entry.first_seen)},
  };
  if (entry.last_loaded) object["last_loaded_unix_ms"] = unix_millis(*entry.last_loaded);
  return boost::json::serialize(object);
}

Digest digest_field(JsonFields& fields, std::string_view field) {
  const auto digest = digest_from_hex(fields.text(field));
  if (!digest) fields.refuse(field, "is no digest");
  return digest ? *digest : Digest{};
}

/// What is stored is our own, so whatever is wrong with it is damage or a later version.
Result<CatalogEntry> decode(std::string_view text, const std::string& place) {
  const auto object = parse_json_object(text, place);
  if (!object) return object.error();
  JsonFields fields(*object, place);
  if (fields.integer("version", kNatural) != kVersion)
    fields.refuse("version", fmt::format("this version of the program knows {}; run a later one", kVersion));
  CatalogEntry entry;
  entry.folder = fields.text("folder");
  entry.weights = digest_field(fields, "weights_digest");
  entry.config = digest_field(fields, "config_digest");
  entry.bytes = Bytes(fields.integer("weight_bytes", kNatural));
  entry.first_seen = unix_time(fields.integer("first_seen_unix_ms", kNatural));
  if (const auto loaded = fields.maybe_integer("last_loaded_unix_ms", kNatural))
    entry.last_loaded = unix_time(*loaded);
  if (fields.error()) return make_error(ErrorCode::corrupt, fields.error()->context);
  return entry;
}

std::string place_of(std::string_view model) {
  return fmt::format("catalog entry of model '{}'", model);
}

}  // namespace

Result<void> Catalog::put(const ModelId& model, const CatalogEntry& entry) {
  return store_.put(Family::catalog, model.text(), encode(entry));
}

Result<std::optional<CatalogEntry>> Catalog::find(const ModelId& model) const {
  const auto stored = store_.get(Family::catalog, model.text());
  if (!stored) return stored.error();
  if (!*stored) return std::optional<CatalogEntry>();
  auto entry = decode(**stored, place_of(model.text()));
  if (!entry) return entry.error();
  return std::optional(std::move(*entry));
}

Result<std::map<ModelId, CatalogEntry>> Catalog::all() const {
  std::map<ModelId, CatalogEntry> entries;
  std::optional<Error> fault;
  const auto scanned = store_.scan(Family::catalog, "", [&](std::string_view model, std::string_view value) {
    auto entry = decode(value, place_of(model));
    if (entry) entries.emplace(std::string(model), std::move(*entry));
    if (!entry) fault = entry.error();
    return !fault;
  });
  if (!scanned) return scanned.error();
  if (fault) return *fault;
  return entries;
}

Result<void> Catalog::erase(const ModelId& model) {
  return store_.erase(Family::catalog, model.text());
}

}  // namespace sangam
