// Commands of operators: their JSON, their ends, and who may give them.
#include "gateway/core/command_desk.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "gateway/api/admin.hpp"
#include "gateway/http/key_ring.hpp"
#include "gateway/http/request_headers.hpp"

using namespace sangam;

namespace {

const ActorName kLifecycle("lifecycle");

CommandEnded ended(std::uint64_t command) {
  CommandEnded e;
  e.command = command;
  return e;
}

}  // namespace

TEST_CASE("a command is sent under an id of its own and answered once") {
  CommandDesk desk(ActorName("gateway/1"), Incarnation{3});
  desk.found(kLifecycle);
  Outbox out;
  const std::uint64_t id = desk.open(Command{}, out);
  REQUIRE(out.letters.size() == 1);
  CHECK(out.letters[0].to == kLifecycle);
  CHECK(std::get<Command>(out.letters[0].message).command == id);
  CHECK(std::get<Command>(out.letters[0].message).answer_to == ActorName("gateway/1"));
  CHECK((id >> 32) == 3);
  desk.ended(ended(id));
  desk.ended(ended(id));
  CHECK(desk.take_ended().size() == 1);
  CHECK(desk.take_ended().empty());
}

TEST_CASE("what nobody waits for any more is not told") {
  CommandDesk desk(ActorName("gateway/1"), Incarnation{3});
  desk.found(kLifecycle);
  Outbox out;
  const std::uint64_t id = desk.open(Command{}, out);
  desk.close(id);
  desk.ended(ended(id));
  CHECK(desk.take_ended().empty());
}

TEST_CASE("without a lifecycle a command fails at once; with its loss, those under way do") {
  CommandDesk desk(ActorName("gateway/1"), Incarnation{3});
  Outbox out;
  desk.open(Command{}, out);
  CHECK(out.letters.empty());
  CHECK(desk.take_ended().at(0).code == ErrorCode::unavailable);
  desk.found(kLifecycle);
  desk.open(Command{}, out);
  desk.open(Command{}, out);
  CHECK(desk.take_ended().empty());
  desk.lost({kLifecycle, Incarnation{1}, "killed"});
  const auto failed = desk.take_ended();
  REQUIRE(failed.size() == 2);
  CHECK(failed[0].why.find("killed") != std::string::npos);
}

TEST_CASE("a command's body may be absent; what is in it is read, and a mistake is named") {
  CHECK(parse_command(CommandVerb::wake, "").value().models.empty());
  const auto command = parse_command(
      CommandVerb::drain, R"({"models":["a/b"],"workers":["worker/1"],"drain_for_ms":1500,"at_deadline":"migrate"})");
  REQUIRE(command.has_value());
  CHECK(command->verb == CommandVerb::drain);
  CHECK(command->models == std::vector{ModelId("a/b")});
  CHECK(command->workers == std::vector{ActorName("worker/1")});
  CHECK(command->drain_for == Millis(1500));
  CHECK(command->at_deadline == AtDeadline::migrate);
  const auto param_of = [](const char* body) {
    const auto wrong = parse_command(CommandVerb::wake, body);
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().code == ErrorCode::invalid_input);
    return wrong.error().param;
  };
  CHECK(param_of(R"({"model":"a"})") == "model");
  CHECK(param_of(R"({"models":"a"})") == "models");
  CHECK(param_of(R"({"models":[""]})") == "models");
  CHECK(param_of(R"({"drain_for_ms":-1})") == "drain_for_ms");
  CHECK(param_of(R"({"at_deadline":"wait"})") == "at_deadline");
  CHECK(param_of(R"({"pin":"yes"})") == "pin");
}

TEST_CASE("an order's end tells its time, bytes and phases") {
  CommandEnded e = ended(1);
  OrderEnded order;
  order.model = ModelId("a");
  order.worker = ActorName("worker/1");
  order.residency = Residency::active;
  order.phases = {{"reserve", Micros(500), Bytes(0)}, {"copy", Micros(1500), Bytes(4096)}};
  order.evicted = {ModelId("b")};
  e.orders = {order};
  const auto json = boost::json::parse(command_json(e)).at("orders").at(0);
  CHECK(json.at("residency") == "active");
  CHECK(json.at("took_ms").as_double() == doctest::Approx(2.0));
  CHECK(json.at("moved_bytes") == 4096);
  CHECK(json.at("phases").at(1).at("name") == "copy");
  CHECK(json.at("evicted").at(0) == "b");
  CHECK(json.at("error").is_null());
}

TEST_CASE("only an operator's key opens the admin routes; without any keys only this host does") {
  const KeyRing open({});
  CHECK(open.is_operator("", true));
  CHECK_FALSE(open.is_operator("", false));
  ApiKey user;
  user.key = "sk-user";
  ApiKey admin;
  admin.key = "sk-admin";
  admin.admin = true;
  const KeyRing ring({user, admin});
  CHECK(ring.is_operator("sk-admin", false));
  CHECK_FALSE(ring.is_operator("sk-user", true));
  CHECK_FALSE(ring.is_operator("", true));
}

TEST_CASE("being on this host does not make an operator of whoever is behind a proxy or a page in a browser") {
  HttpRequest request;
  CHECK_FALSE(comes_straight_from_here(request));
  request.from_this_host = true;
  CHECK(comes_straight_from_here(request));
  for (const char* name : {"forwarded", "x-forwarded-for", "x-real-ip", "via", "origin"}) {
    HttpRequest passed_on = request;
    passed_on.headers[name] = "somebody";
    CHECK_FALSE(comes_straight_from_here(passed_on));
  }
}

TEST_CASE("what a worker's memory is used for is told by model, too, also of one that sleeps and has left prefixes") {
  WorkerMemory memory;
  memory.worker = ActorName("worker/1");
  memory.kv = Bytes{30};
  memory.cached = Bytes{50};
  memory.models = {{ModelId("awake"), Bytes{30}, Bytes{10}}, {ModelId("asleep"), Bytes{0}, Bytes{40}}};
  std::vector<InstanceState> instances;
  for (const char* name : {"asleep", "awake", "gone"}) {
    InstanceState& state = instances.emplace_back();
    state.worker = memory.worker;
    state.model = ModelId(name);
    state.weights = Bytes{100};
    state.own = Bytes{60};
  }
  instances[1].residency = Residency::active;
  const auto told = boost::json::parse(memory_json({memory}, instances)).at("workers").at(0);
  CHECK(told.at("kv_bytes") == 30);
  CHECK(told.at("cached_bytes") == 50);
  const auto& models = told.at("models").as_array();
  REQUIRE(models.size() == 2);
  CHECK(models[0].at("model") == "asleep");
  CHECK(models[0].at("weights_bytes") == 0);
  CHECK(models[0].at("cached_bytes") == 40);
  CHECK(models[1].at("shared_bytes") == 40);
  CHECK(models[1].at("kv_bytes") == 30);
  CHECK(models[1].at("cached_bytes") == 10);
}
