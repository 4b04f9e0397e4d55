// Paths, keys and headers.
#include "gateway/http/routes.hpp"

#include <doctest/doctest.h>

#include "gateway/http/key_ring.hpp"
#include "gateway/http/request_headers.hpp"

using namespace sangam;

TEST_CASE("a path is found with a trailing slash, a query, and escapes") {
  CHECK(route_of("POST", "/v1/chat/completions").route == Route::chat);
  CHECK(route_of("POST", "/v1/chat/completions/").route == Route::chat);
  CHECK(route_of("POST", "/v1/completions?x=1").route == Route::completions);
  CHECK(route_of("GET", "/v1/models/").route == Route::models);
  CHECK(route_of("GET", "/").route == Route::root);
  CHECK(route_of("GET", "/v1/chat").route == Route::unknown);
}

TEST_CASE("a model's name may contain slashes, raw or escaped") {
  for (const std::string target : {"/v1/models/org/a-b", "/v1/models/org%2Fa-b", "/v1/models/org%2fa%2Db/"}) {
    const RouteMatch match = route_of("GET", target);
    CHECK(match.route == Route::model);
    CHECK(match.argument == "org/a-b");
  }
  CHECK(route_of("GET", "/v1/models/100%").argument == "100%");
  CHECK(route_of("GET", "/v1/models/a%zz%4").argument == "a%zz%4");
}

TEST_CASE("a wrong method is told from an unknown path") {
  const RouteMatch match = route_of("GET", "/v1/completions");
  CHECK_FALSE(match.method_allowed);
  CHECK(match.allow == "POST, OPTIONS");
  CHECK(route_of("HEAD", "/v1/models").method_allowed);
  CHECK_FALSE(route_of("EAD", "/v1/models").method_allowed);
  CHECK(route_of("POST", "/ping").method_allowed);
}

TEST_CASE("only probes are open") {
  for (const std::string path : {"/health", "/v1/health", "/ping", "/livez", "/readyz"})
    CHECK(route_of("GET", path).open);
  for (const std::string path :
       {"/", "/v1/models", "/v1/models/x", "/metrics", "/version", "/load", "/tokenize"}) {
    CHECK_FALSE(route_of("GET", path).open);
  }
}

TEST_CASE("durations are read as Go writes them") {
  CHECK(go_duration("1.5s") == Millis{1500});
  CHECK(go_duration("1m30s") == Millis{90'000});
  CHECK(go_duration("2h") == Millis{7'200'000});
  CHECK(go_duration("300ms") == Millis{300});
  CHECK(go_duration("1500us") == Millis{2});
  for (const std::string bad : {"", "5", "s", "5x", "-1s", "1s5", "1e400s", "100000h"})
    CHECK_FALSE(go_duration(bad));
}

TEST_CASE("a key is read from either header, whatever the case of the scheme") {
  HttpRequest request;
  request.headers["authorization"] = "bEaReR  abc";
  CHECK(key_of(request) == "abc");
  request.headers["authorization"] = "Basic abc";
  CHECK(key_of(request).empty());
  request.headers["x-api-key"] = "xyz";
  CHECK(key_of(request) == "xyz");
}

TEST_CASE("a key opens for its tenant, and no keys are an open door") {
  const KeyRing ring({{.key = "k1", .tenant = TenantId("one")}, {.key = "k2", .tenant = TenantId("two")}});
  CHECK(ring.tenant_of("k2") == TenantId("two"));
  CHECK_FALSE(ring.tenant_of("k3"));
  CHECK_FALSE(ring.tenant_of(""));
  CHECK_FALSE(ring.tenant_of("k22"));
  CHECK(KeyRing({}).tenant_of("") == TenantId("default"));
}

TEST_CASE("a request id is sent back only where it is fit to be") {
  HttpRequest request;
  CHECK_FALSE(request_id_of(request));
  request.headers["x-request-id"] = "abc-1";
  CHECK(request_id_of(request) == "abc-1");
  for (const std::string& bad :
       {std::string("a\tb"), std::string("a b"), std::string(129, 'a'), std::string("\xC3\xA9")}) {
    request.headers["x-request-id"] = bad;
    CHECK_FALSE(request_id_of(request));
  }
}
