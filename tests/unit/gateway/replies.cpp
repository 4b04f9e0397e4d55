// Errors and the table of statuses; listings; bytes made fit for JSON.
#include "gateway/api/replies.hpp"

#include <doctest/doctest.h>

#include <boost/describe/enumerators.hpp>
#include <boost/json/parse.hpp>
#include <boost/mp11/algorithm.hpp>
#include <limits>

using namespace sangam;

TEST_CASE(
    "every error code has a status of its meaning, and its JSON has all four fields, code as a string") {
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<ErrorCode>>([](auto row) {
    const ErrorForm form = form_of(row.value);
    CAPTURE(row.name);
    CHECK(form.status >= 400);
    CHECK(form.status < 600);
    const auto error =
        boost::json::parse(error_json({row.value, "why", "", Millis{0}})).at("error").as_object();
    CHECK(error.size() == 4);
    CHECK(error.at("message") == "why");
    CHECK(error.at("type").is_string());
    CHECK(error.at("param").is_null());
    CHECK(error.at("code").is_string());
  });
  const auto status = [](ErrorCode code) { return form_of(code).status; };
  CHECK(status(ErrorCode::invalid_input) == 400);
  CHECK(status(ErrorCode::context_length) == 400);
  CHECK(form_of(ErrorCode::context_length).code == "context_length_exceeded");
  CHECK(status(ErrorCode::unauthorized) == 401);
  CHECK(status(ErrorCode::not_found) == 404);
  CHECK(status(ErrorCode::queue_full) == 429);
  CHECK(status(ErrorCode::internal) == 500);
  CHECK(status(ErrorCode::unavailable) == 503);
  CHECK(status(ErrorCode::cannot_be_on_time) == 503);
  CHECK(form_of(ErrorCode::unavailable).retry);
  CHECK_FALSE(form_of(ErrorCode::corrupt).retry);  // Asking again would only load it again.
}

TEST_CASE("bytes that are no UTF-8 are replaced, and what is UTF-8 stays") {
  CHECK(printable("h\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == "h\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(printable("a\xC3") == "a\xEF\xBF\xBD");
  CHECK(printable("\x80z") == "\xEF\xBF\xBDz");
  for (const std::string bad :
       {"\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    CHECK(printable(bad).find(bad) == std::string::npos);
  }
}

TEST_CASE("what is impossible has a finite logprob, since JSON has no infinity") {
  ReplyHead head{.id = "x", .created = 1, .model = "m", .service_tier = "default", .logprobs = true};
  TokenPiece piece{
      .bytes = "a", .logprob = -std::numeric_limits<double>::infinity(), .text_offset = 0, .top = {}};
  const auto body = boost::json::parse(whole_answer(head, {{"a", {piece}, FinishReason::stop}}, {}));
  CHECK(body.at("choices").at(0).at("logprobs").at("content").at(0).at("logprob") == -9999.0);
}

TEST_CASE("a model is listed with what clients read") {
  OfferedModel model;
  model.id = ModelId("org/m");
  model.context = Tokens{256};
  const auto listed = boost::json::parse(models_json({{&model, "alias", "ready"}}, 1700000000));
  CHECK(listed.at("object") == "list");
  const auto& item = listed.at("data").at(0);
  CHECK(item.at("id") == "alias");
  CHECK(item.at("object") == "model");
  CHECK(item.at("created") == 1700000000);
  CHECK(item.at("owned_by") == "sangam");
  CHECK(item.at("root") == "org/m");
}
