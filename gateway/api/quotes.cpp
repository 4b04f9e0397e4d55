// The JSON of quotes.
#include "gateway/api/quotes.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "gateway/api/body_fields.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr double kCoverage = 0.9;  // The contract of Quoted.

json::value millis_if(bool known, Millis time) {
  return known ? json::value(time.count()) : json::value();
}

}  // namespace

TextEndpoint endpoint_of(std::string_view body) {
  const auto object = parse_object(body);
  const bool chat = object && BodyFields(*object).find("messages") != nullptr;
  return chat ? TextEndpoint::chat : TextEndpoint::completions;
}

std::string quote_json(const QuoteSubject& subject, const Quoted& quoted) {
  const bool known = quoted.latest > Millis(0);
  const bool feasible = quoted.code == ErrorCode::none;
  return json::serialize(
      json::object{{"object", "deadline.quote"},
                   {"model", subject.model},
                   {"class", boost::describe::enum_to_string(subject.service_class, "")},
                   {"prompt_tokens", subject.prompt.count()},
                   {"earliest_ms", millis_if(known, quoted.earliest)},
                   {"latest_ms", millis_if(known, quoted.latest)},
                   {"coverage", kCoverage},
                   {"feasible", feasible},
                   {"feasible_in_ms", millis_if(feasible || quoted.feasible_in > Millis(0), quoted.feasible_in)}});
}

}  // namespace sangam
