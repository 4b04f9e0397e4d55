// The routes.
#include "gateway/http/front_desk.hpp"

#include <chrono>

#include "gateway/api/admin.hpp"
#include "gateway/api/snapshot.hpp"
#include "gateway/http/request_headers.hpp"

namespace sangam {
namespace {

/// What /sleep gives to live requests.
constexpr Millis kSleepDrain{30'000};

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<Seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

HttpReply json_reply(std::string body) {
  return {.headers = {}, .body = std::move(body)};
}
HttpReply plain_reply(std::string body) {
  return {.content_type = "text/plain; charset=utf-8", .headers = {}, .body = std::move(body)};
}

void add_rate(HttpHeaders& headers, const std::string& what, const std::optional<RateAllowance>& rate) {
  if (!rate) return;
  headers.emplace_back("x-ratelimit-limit-" + what, std::to_string(rate->limit));
  headers.emplace_back("x-ratelimit-remaining-" + what, std::to_string(rate->remaining));
  headers.emplace_back("x-ratelimit-reset-" + what, std::to_string(rate->reset.count()) + "ms");
}

}  // namespace

FrontDesk::FrontDesk(const GatewayOptions& options, const ModelCatalog& catalog, const GatewayActor& actor,
                     Metrics& metrics, const std::atomic<std::size_t>& connections)
    : options_(options),
      catalog_(catalog),
      actor_(actor),
      metrics_(metrics),
      connections_(connections),
      keys_(options.keys),
      created_(unix_seconds()) {}

std::optional<TenantId> FrontDesk::tenant_of(const HttpRequest& request) const {
  return keys_.tenant_of(key_of(request));
}

std::optional<HttpReply> FrontDesk::doorstep(const HttpRequest& request, const RouteMatch& match) const {
  if (request.method == "OPTIONS" && match.route != Route::unknown) return preflight(request, match);
  if (!match.open && !tenant_of(request)) {
    return error_reply(ApiError{ErrorCode::unauthorized,
                                "Incorrect API key provided, or none. Send the header "
                                "'Authorization: Bearer KEY'.",
                                "", Millis{0}});
  }
  if (match.admin && !keys_.is_operator(key_of(request), comes_straight_from_here(request))) {
    return error_reply(403,
                       "This is for operators: use a key with admin = true, or, where the gateway has no keys, "
                       "its own host, without a proxy or a browser between.",
                       "not_an_operator");
  }
  if (match.route == Route::unknown) {
    return error_reply(404, "There is nothing at " + request.method + " " + printable(match.argument) + ".",
                       "unknown_url");
  }
  if (!match.method_allowed) {
    HttpReply reply = error_reply(
        405,
        "The method " + request.method + " is not allowed here; allowed: " + std::string(match.allow) + ".",
        "method_not_allowed");
    reply.headers.emplace_back("allow", match.allow);
    return reply;
  }
  const std::string_view encoding = request.header("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    return error_reply(
        415, "The content encoding '" + printable(encoding) + "' is not supported; send the body as it is.",
        "unsupported_content_encoding");
  }
  return std::nullopt;
}

HttpReply FrontDesk::preflight(const HttpRequest& request, const RouteMatch& match) const {
  HttpReply reply{
      .status = 204, .content_type = "", .headers = {{"allow", std::string(match.allow)}}, .body = {}};
  if (options_.cors_origin.empty()) return reply;
  const std::string_view asked = request.header("access-control-request-headers");
  reply.headers.emplace_back("access-control-allow-methods", match.allow);
  reply.headers.emplace_back("access-control-allow-headers",
                             asked.empty() ? "authorization, content-type" : asked);
  reply.headers.emplace_back("access-control-max-age", "86400");
  return reply;
}

HttpReply FrontDesk::answer(const RouteMatch& match) const {
  switch (match.route) {
    case Route::root: return plain_reply("Sangam is running. The API is at /v1, the models at /v1/models.\n");
    case Route::models: return models();
    case Route::model: return model(match.argument);
    case Route::health:
    case Route::ping:
    case Route::live: return json_reply(R"({"status":"ok"})");
    case Route::ready: return readiness();
    case Route::version: return json_reply("{\"version\":\"" + options_.version + "\"}");
    case Route::instances: return json_reply(instances_json(actor_.core().fleet().instances()));
    case Route::memory:
      return json_reply(memory_json(actor_.core().fleet().memories(), actor_.core().fleet().instances()));
    case Route::snapshot: return json_reply(snapshot_json(actor_.core().fleet().snapshot()));
    case Route::is_sleeping: return is_sleeping();
    case Route::load: return json_reply("{\"server_load\":" + std::to_string(actor_.core().calls()) + "}");
    case Route::metrics: {
      HttpReply reply =
          plain_reply(metrics_.text(actor_.core().fleet(), connections_, actor_.core().calls()));
      reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return reply;
    }
    default: return error_reply(404, "There is nothing here.", "unknown_url");
  }
}

ApiResult<const OfferedModel*> FrontDesk::model_named(const std::string& name) const {
  if (const OfferedModel* model = catalog_.find(name)) return model;
  if (name.empty() && catalog_.only()) return catalog_.only();
  if (name.empty()) return invalid("model", "The field 'model' is missing; GET /v1/models lists the names.");
  return ApiError{ErrorCode::not_found,
                  "The model '" + name + "' does not exist; GET /v1/models lists the names.", "model",
                  Millis{0}};
}

ModelListing FrontDesk::listing(const std::string& name, const OfferedModel& model) const {
  return {&model, name, model.text == nullptr ? "broken" : actor_.core().fleet().status_of(model.id)};
}

HttpReply FrontDesk::models() const {
  std::vector<ModelListing> listings;
  for (const auto& [name, model] : catalog_.names()) listings.push_back(listing(name, *model));
  return json_reply(models_json(listings, created_));
}

HttpReply FrontDesk::model(const std::string& name) const {
  const auto model = model_named(name);
  if (!model) return error_reply(model.error());
  return json_reply(model_json(listing(name, **model), created_));
}

HttpReply FrontDesk::tokens(const HttpRequest& request, Route route) const {
  return route == Route::tokenize ? tokenize(request.body) : detokenize(request.body);
}

HttpReply FrontDesk::tokenize(const std::string& body) const {
  const auto request = parse_tokenize(body);
  if (!request) return error_reply(request.error());
  const auto model = model_named(request->model);
  if (!model) return error_reply(model.error());
  if ((*model)->text == nullptr) return error_reply(broken_model(**model));
  const ModelText& text = *(*model)->text;
  ApiResult<std::vector<TokenId>> tokens =
      request->prompt ? text.encode(*request->prompt, request->add_special_tokens)
                      : chat_tokens(request->chat, **model, request->add_special_tokens);
  if (!tokens) return error_reply(tokens.error());
  std::vector<std::string> texts;
  for (const TokenId token : *tokens) texts.push_back(printable(text.bytes_of(token)));
  return json_reply(tokenize_json(*tokens, (*model)->context, request->token_texts ? &texts : nullptr));
}

HttpReply FrontDesk::detokenize(const std::string& body) const {
  const auto request = parse_detokenize(body);
  if (!request) return error_reply(request.error());
  const auto model = model_named(request->model);
  if (!model) return error_reply(model.error());
  if ((*model)->text == nullptr) return error_reply(broken_model(**model));
  const ModelText& text = *(*model)->text;
  for (const TokenId token : request->tokens) {
    if (token < text.vocabulary_size()) continue;
    return error_reply(invalid("tokens", "Invalid 'tokens': " + std::to_string(token) +
                                             " is outside of the vocabulary of " +
                                             std::to_string(text.vocabulary_size()) + "."));
  }
  return json_reply(detokenize_json(text.decode(request->tokens, false)));
}

HttpReply FrontDesk::readiness() const {
  for (const OfferedModel& model : catalog_.all()) {
    if (model.text != nullptr && actor_.core().fleet().can_run(model.id))
      return json_reply(R"({"status":"ready"})");
  }
  return error_reply(ApiError{
      ErrorCode::unavailable,
      "None of the " + std::to_string(catalog_.all().size()) + " models has both a queue and a worker yet.",
      "", Millis{0}});
}

/// As vLLM says it, which has one model: true when none of ours is active or on its way.
HttpReply FrontDesk::is_sleeping() const {
  for (const InstanceState& instance : actor_.core().fleet().instances()) {
    if (std::max(instance.residency, instance.target) == Residency::active)
      return json_reply(R"({"is_sleeping":false})");
  }
  return json_reply(R"({"is_sleeping":true})");
}

/// vLLM's /sleep says by ?level=2 that the copy in host memory is not needed either, and has no body.
ApiResult<Command> FrontDesk::command(const HttpRequest& request, const RouteMatch& match) const {
  auto command = parse_command(match.verb, request.body);
  if (!command) return command;
  const bool from_vllm = match.handler == "/sleep";
  if (from_vllm && command->drain_for == Millis{0}) command->drain_for = kSleepDrain;
  if (from_vllm && request.target.find("level=2") != std::string::npos) command->verb = CommandVerb::unload;
  return command;
}

CallTicket FrontDesk::ticket(const HttpRequest& request, const std::string& id, std::uint64_t seed) const {
  return {.setting = {.tenant = tenant_of(request).value_or(TenantId("default")),
                      .trace = trace_of(request),
                      .seed = seed,
                      .choices_max = options_.limits.choices_max},
          .id = id,
          .created = unix_seconds()};
}

ApiResult<PreparedCall> FrontDesk::prepare(const HttpRequest& request, TextEndpoint endpoint,
                                           const CallTicket& ticket) const {
  const bool chat = endpoint == TextEndpoint::chat;
  auto parsed = chat ? parse_chat(request.body) : parse_completion(request.body);
  if (!parsed) return parsed.error();
  auto urgency = urgency_of(request, parsed->urgency);
  if (!urgency) return urgency.error();
  parsed->urgency = *urgency;
  const auto model = model_named(parsed->model);
  if (!model) return model.error();
  auto call = sangam::prepare(*parsed, **model, ticket.setting);
  if (!call) return call.error();
  PreparedCall prepared{.call = std::move(*call), .head = {}, .stream = parsed->stream, .echo = {}};
  prepared.head = {.endpoint = endpoint,
                   .id = (chat ? "chatcmpl-" : "cmpl-") + ticket.id,
                   .created = ticket.created,
                   .model = parsed->model.empty() ? (*model)->id.text() : parsed->model,
                   .service_tier = std::string(tier_of(prepared.call.service_class)),
                   .include_usage = parsed->include_usage,
                   .logprobs = parsed->sampling.logprobs >= 0};
  for (std::size_t i = 0; parsed->echo && i < prepared.call.choices(); ++i) {
    const std::size_t prompt = i / std::size_t(prepared.call.n);
    const auto* text = std::get_if<std::string>(&parsed->prompts[prompt]);
    prepared.echo.push_back(text ? *text : (*model)->text->decode(prepared.call.prompts[prompt], true));
  }
  return prepared;
}

void FrontDesk::add_common(HttpHeaders& headers, const HttpRequest& request, const std::string& id,
                           Micros spent) const {
  headers.emplace_back("x-request-id", request_id_of(request).value_or("req-" + id));
  headers.emplace_back("openai-processing-ms", std::to_string(std::chrono::ceil<Millis>(spent).count()));
  if (!options_.cors_origin.empty()) {
    headers.emplace_back("access-control-allow-origin", options_.cors_origin);
    headers.emplace_back("access-control-expose-headers",
                         "x-request-id, retry-after, retry-after-ms, x-should-retry, "
                         "x-sangam-ttft-earliest-ms, x-sangam-ttft-latest-ms");
  }
  if (const auto tenant = tenant_of(request)) {
    const RateState rates = actor_.core().rate_state(*tenant, GatewayActor::now());
    add_rate(headers, "requests", rates.requests);
    add_rate(headers, "tokens", rates.tokens);
  }
}

}  // namespace sangam
