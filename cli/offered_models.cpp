// The list of models, as far as a load needs it.
#include "cli/offered_models.hpp"

#include <boost/json.hpp>

#include "cli/answers.hpp"

namespace sangam {

namespace json = boost::json;

Result<std::vector<MeshModel>> offered_models(const HttpBase& base, const std::string& key) {
  const auto answer = http_call(base, {"GET", "/v1/models", {}, Millis(5'000), key});
  if (!answer) return answer.error();
  if (answer->status != 200) return refused(*answer);
  std::vector<MeshModel> models;
  boost::system::error_code failure;
  const auto listing = json::parse(answer->body, failure);
  const auto* list = failure ? nullptr : listing.find_pointer("/data", failure);
  if (list == nullptr || !list->is_array()) return make_error(ErrorCode::invalid_input, "GET /v1/models is no list of models; is this a mesh?");
  for (const auto& entry : list->get_array()) {
    boost::system::error_code absent;
    const auto* id = entry.find_pointer("/id", absent);
    const auto* context = entry.find_pointer("/max_model_len", absent);
    if (id == nullptr || !id->is_string()) continue;
    models.push_back({std::string(id->get_string()), Tokens(context != nullptr && context->is_int64() ? context->get_int64() : 0)});
  }
  return models;
}

}  // namespace sangam
