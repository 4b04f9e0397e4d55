// What each route answers. No sockets: a request comes in as a value, a reply goes out as one.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "gateway/api/prepare.hpp"
#include "gateway/http/call_answer.hpp"
#include "gateway/http/gateway_actor.hpp"
#include "gateway/http/http_message.hpp"
#include "gateway/http/key_ring.hpp"
#include "gateway/http/routes.hpp"
#include "gateway/models/model_catalog.hpp"

namespace sangam {

/// A generating request, ready for the core.
struct PreparedCall {
  ClientCall call;
  ReplyHead head;
  bool stream = false;
  std::vector<std::string> echo;
};

/// What preparation needs beside the request; values, so that another thread may have them.
struct CallTicket {
  CallSetting setting;
  std::string id;
  std::int64_t created = 0;
};

class FrontDesk {
 public:
  FrontDesk(const GatewayOptions& options, const ModelCatalog& catalog, const GatewayActor& actor,
            Metrics& metrics, const std::atomic<std::size_t>& connections);

  /// Wrong method, no key, no such route, a preflight: what is answered before a body is read.
  [[nodiscard]] std::optional<HttpReply> doorstep(const HttpRequest& request, const RouteMatch& match) const;
  /// Tokenize and detokenize. Reads only what never changes: any thread may call it.
  [[nodiscard]] HttpReply tokens(const HttpRequest& request, Route route) const;
  /// All routes that read no body.
  [[nodiscard]] HttpReply answer(const RouteMatch& match) const;

  /// Of a request on a route of commands.
  [[nodiscard]] ApiResult<Command> command(const HttpRequest& request, const RouteMatch& match) const;

  [[nodiscard]] CallTicket ticket(const HttpRequest& request, const std::string& id,
                                  std::uint64_t seed) const;
  /// Reads only what never changes: any thread may call it.
  [[nodiscard]] ApiResult<PreparedCall> prepare(const HttpRequest& request, TextEndpoint endpoint,
                                                const CallTicket& ticket) const;

  /// Headers that every reply has: CORS, request id, time, rate limits.
  void add_common(HttpHeaders& headers, const HttpRequest& request, const std::string& id,
                  Micros spent) const;

 private:
  [[nodiscard]] std::optional<TenantId> tenant_of(const HttpRequest& request) const;
  [[nodiscard]] ApiResult<const OfferedModel*> model_named(const std::string& name) const;
  [[nodiscard]] ModelListing listing(const std::string& name, const OfferedModel& model) const;
  [[nodiscard]] HttpReply models() const;
  [[nodiscard]] HttpReply model(const std::string& name) const;
  [[nodiscard]] HttpReply tokenize(const std::string& body) const;
  [[nodiscard]] HttpReply detokenize(const std::string& body) const;
  [[nodiscard]] HttpReply readiness() const;
  [[nodiscard]] HttpReply is_sleeping() const;
  [[nodiscard]] HttpReply preflight(const HttpRequest& request, const RouteMatch& match) const;

  const GatewayOptions& options_;
  const ModelCatalog& catalog_;
  const GatewayActor& actor_;
  Metrics& metrics_;
  const std::atomic<std::size_t>& connections_;
  KeyRing keys_;
  std::int64_t created_;  ///< Unix seconds of the start.
};

}  // namespace sangam
