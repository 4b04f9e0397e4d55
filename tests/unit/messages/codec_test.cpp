#include <doctest/doctest.h>
#include "messages/wire/codec.hpp"
using namespace sangam;
TEST_CASE("smoke") {
  for (auto& p : wire::schema_mismatches()) FAIL_CHECK(p);
  auto e = std::make_shared<Envelope>(); e->from = ActorName("a"); e->to = ActorName("b"); e->id = 1;
  e->message = RunEnded{RequestId{5}, 1, ActorName("w"), ModelId("m"), FinishReason::stop, Tokens(3)};
  auto b = wire::encode({.body = EnvelopePtr(e)});
  if (!b) FAIL(b.error().why);
  auto f = wire::decode(wire::bytes_of(*b));
  if (!f) FAIL(f.error().why);
}
