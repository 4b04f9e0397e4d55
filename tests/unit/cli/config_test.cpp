// The configuration: what is read, and how each mistake is named.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/config_reader.hpp"
#include "cli/mesh_config.hpp"

using namespace sangam;

namespace {

const std::filesystem::path kPool = std::filesystem::path(SANGAM_SOURCE_DIR) / "models";

/// Writes a configuration into a folder of its own and reads it.
Result<MeshConfig> read(const std::string& text) {
  const auto folder = std::filesystem::temp_directory_path() / ("sangam-config-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "mesh.toml";
  std::ofstream(path) << text;
  auto config = read_mesh_config(path.string(), kPool);
  std::filesystem::remove_all(folder);
  return config;
}

/// The error of a configuration that must be refused, from the file's name on.
std::string error_of(const std::string& text) {
  const auto config = read(text);
  REQUIRE_FALSE(config);
  const auto& context = config.error().context;
  const auto name = context.find("mesh.toml");
  return name == std::string::npos ? context : context.substr(name);
}

}  // namespace

TEST_CASE("durations and sizes need a unit and fit into 63 bits") {
  CHECK(parse_duration("250ms").value() == Millis(250));
  CHECK(parse_duration("30s").value() == Millis(30'000));
  CHECK(parse_duration("5m").value() == Millis(300'000));
  CHECK(parse_duration("2h").value() == Millis(7'200'000));
  CHECK(parse_bytes("100B").value() == Bytes(100));
  CHECK(parse_bytes("64KiB").value() == Bytes(65'536));
  CHECK(parse_bytes("3GiB").value() == Bytes(3'221'225'472));
  for (const char* wrong : {"", "5", "s", "-1s", "1.5s", "5 s", "5sec", "9223372036854775807h", "99999999999999999999ms"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_duration(wrong));
  }
  for (const char* wrong : {"", "5", "5kb", "5MB", "-1B", "9007199254740993TiB"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_bytes(wrong));
  }
}

TEST_CASE("without a file the whole pool is served by one worker") {
  const auto config = default_mesh_config(kPool);
  REQUIRE(config);
  CHECK(config->gateway.models.size() == 15);
  CHECK(config->gateway.models.front().id == ModelId("A-arith"));
  REQUIRE(config->workers.size() == 1);
  CHECK(config->workers[0].models.size() == 15);
  CHECK(roles_of(*config) == std::vector<std::string>{"gateway", "queue", "scheduler", "lifecycle", "worker/1"});
}

TEST_CASE("every table of a full configuration arrives in the options of its role") {
  const auto config = read(R"(
[mesh]
state = "here"
log = "warning"
heartbeat_interval = "100ms"
heartbeat_timeout = "2s"
[gateway]
listen = "0.0.0.0:9000"
body_max = "1MiB"
ping_interval = "5s"
[[key]]
key = "secret"
tenant = "acme"
requests_per_minute = 60
[[tenant]]
name = "acme"
weight = 3
waiting_requests_max = 7
[queue]
waiting_requests_max = 99
best_effort_percent = 10
[scheduler]
dispatch = "edf"
look_ahead = "15ms"
[[worker]]
name = "worker/a"
models = ["A-arith", "A-date"]
memory = "128MiB"
[[worker]]
name = "worker/b"
[[node]]
name = "front"
endpoint = "tcp://front:7000"
roles = ["gateway", "queue", "scheduler"]
[[node]]
name = "a"
endpoint = "tcp://a:7000"
roles = ["worker/a"]
)");
  REQUIRE_MESSAGE(config, config.error().context);
  CHECK(config->state.filename() == "here");
  CHECK(config->state.is_absolute());
  CHECK(config->log_level == "warning");
  CHECK(config->heartbeat_timeout == Millis(2'000));
  CHECK(config->gateway.listen == "0.0.0.0:9000");
  CHECK(config->gateway.limits.body_max == Bytes(1 << 20));
  CHECK(config->gateway.times.ping == Millis(5'000));
  REQUIRE(config->gateway.keys.size() == 1);
  CHECK(config->gateway.keys[0].tenant == TenantId("acme"));
  CHECK(config->queue.tenants.at(TenantId("acme")).weight == 3);
  CHECK(config->queue.tenants.at(TenantId("acme")).waiting_requests_max == 7);
  CHECK(config->queue.waiting_requests_max == 99);
  CHECK(config->queue.best_effort_percent == 10);
  CHECK((config->scheduler.policy == dispatch_policy("edf").value()));
  CHECK(config->scheduler.look_ahead == Millis(15));
  REQUIRE(config->workers.size() == 2);
  CHECK(config->workers[0].models.size() == 2);
  CHECK(config->workers[0].pool_bytes == Bytes(128 << 20));
  CHECK(config->workers[1].models.size() == 15);
  REQUIRE(config->nodes.size() == 2);
  CHECK(config->nodes[1].roles == std::vector<std::string>{"worker/a"});
}

TEST_CASE("a mistake is named with its line and the remedy") {
  CHECK(error_of("[gateway]\nlisten = \"127.0.0.1:1\"\nlissten = 3\n") ==
        "mesh.toml:3: unknown key 'lissten' in [gateway]; did you mean 'listen'?");
  CHECK(error_of("[gatway]\n") == "mesh.toml:1: unknown key 'gatway' at the top level; did you mean 'gateway'?");
  CHECK(error_of("[gateway]\nlisten = 8080\n") == "mesh.toml:2: 'listen' must be a text in quotes");
  CHECK(error_of("\n[mesh]\nheartbeat_interval = \"fast\"\n").starts_with("mesh.toml:3: 'heartbeat_interval': 'fast' is no duration"));
  CHECK(error_of("[queue]\nwaiting_requests_max = -1\n") == "mesh.toml:2: 'waiting_requests_max' must not be negative");
  CHECK(error_of("[queue]\nbest_effort_percent = 51\n") == "mesh.toml:2: 'best_effort_percent' must be 0 to 50");
  CHECK(error_of("[mesh\n").starts_with("mesh.toml:1: not valid TOML"));
  CHECK(error_of("[scheduler]\ndispatch = \"lst\"\n").starts_with("mesh.toml:2: "));
  CHECK(error_of("[[worker]]\nname = \"worker/1\"\nmodels = [\"absent\"]\n") ==
        "mesh.toml:3: 'absent' is no model of this mesh");
  CHECK(error_of("[[worker]]\nname = \"one\"\n") == "mesh.toml:2: a [[worker]] needs a 'name' that begins with worker/");
  CHECK(error_of("[[model]]\nid = \"x\"\npath = \"nowhere\"\n").find("has no config.json") != std::string::npos);
  CHECK(error_of("[[node]]\nname = \"n\"\nendpoint = \"tcp://n:1\"\nroles = [\"worker/9\"]\n")
            .starts_with("mesh.toml:4: 'worker/9' is no role of this mesh; it has gateway, queue, scheduler, lifecycle, worker/1"));
}

TEST_CASE("two models may not share a name or an alias") {
  const std::string one = "[[model]]\nid = \"x\"\npath = \"" + (kPool / "A-arith").string() + "\"\n";
  const std::string other = "[[model]]\nid = \"y\"\naliases = [\"x\"]\npath = \"" + (kPool / "A-date").string() + "\"\n";
  CHECK(error_of(one + other).starts_with("mesh.toml:6: the name 'x' is taken"));
}

TEST_CASE("a file or a pool that is absent is an error that names it") {
  const auto absent = read_mesh_config("/nowhere/mesh.toml", kPool);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::not_found);
  CHECK(absent.error().context.starts_with("/nowhere/mesh.toml: "));
  CHECK_FALSE(default_mesh_config("/nowhere"));
}

TEST_CASE("a worker's role is one of three words") {
  const auto config = read("[[worker]]\nname = \"worker/1\"\nrole = \"prefill\"\n"
                           "[[worker]]\nname = \"worker/2\"\nrole = \"decode\"\n"
                           "[[worker]]\nname = \"worker/3\"\n");
  REQUIRE(config);
  CHECK(config->workers[0].role == WorkerRole::prefill);
  CHECK(config->workers[1].role == WorkerRole::decode);
  CHECK(config->workers[2].role == WorkerRole::mixed);
  CHECK(error_of("[[worker]]\nname = \"worker/1\"\nrole = \"both\"\n").find("mixed, prefill or decode, not 'both'") !=
        std::string::npos);
}

namespace {

/// Two workers' nodes and one more, each with these lines of its own.
std::string nodes(const std::string& front, const std::string& one, const std::string& two) {
  return "[[worker]]\nname = \"worker/1\"\n[[worker]]\nname = \"worker/2\"\n"
         "[[node]]\nname = \"front\"\nendpoint = \"tcp://front:7700\"\nroles = [\"gateway\", \"queue\"]\n" + front +
         "\n[[node]]\nname = \"one\"\nendpoint = \"tcp://one:7700\"\nlisten = \"tcp://*:7701\"\nroles = [\"worker/1\"]\n" + one +
         "\n[[node]]\nname = \"two\"\nendpoint = \"tcp://two:7700\"\nroles = [\"worker/2\"]\n" + two + "\n";
}

}  // namespace

TEST_CASE("nodes of workers have a bulk channel 1000 ports above their own, or where they say, or none") {
  const auto derived = read(nodes("", "", ""));
  REQUIRE_MESSAGE(derived, derived.error().context);
  CHECK(derived->nodes[0].bulk.empty());
  CHECK(derived->nodes[1].bulk == "tcp://one:8700");
  CHECK(derived->nodes[1].bulk_listen == "tcp://*:8701");
  const auto said = read(nodes("", "bulk = \"tcp://one:9\"\nbulk_listen = \"tcp://*:10\"", "bulk = \"\""));
  REQUIRE_MESSAGE(said, said.error().context);
  CHECK(said->nodes[1].bulk == "tcp://one:9");
  CHECK(said->nodes[1].bulk_listen == "tcp://*:10");
  CHECK(said->nodes[2].bulk.empty());
  CHECK(said->nodes[2].bulk_listen.empty());
  CHECK(error_of(nodes("", "", "bulk = \"tcp://one:7700\"")).find("tcp://one:7700 is taken by another node") != std::string::npos);
  const auto local = read("[[node]]\nname = \"n\"\nendpoint = \"ipc:///run/n\"\nroles = [\"worker/1\"]\n");
  REQUIRE(local);
  CHECK(local->nodes[0].bulk.empty());
  const auto last_port = read("[[node]]\nname = \"n\"\nendpoint = \"tcp://n:65000\"\nroles = [\"worker/1\"]\n");
  REQUIRE(last_port);
  CHECK(last_port->nodes[0].bulk.empty());
}

TEST_CASE("several nodes may host a gateway, and nothing else twice") {
  const auto config = read(nodes("", "", "[[node]]\nname = \"other\"\nendpoint = \"tcp://other:7700\"\nroles = [\"gateway\"]"));
  REQUIRE_MESSAGE(config, config.error().context);
  CHECK(config->nodes[3].roles == std::vector<std::string>{"gateway"});
  CHECK(error_of(nodes("", "", "[[node]]\nname = \"other\"\nendpoint = \"tcp://other:7700\"\nroles = [\"queue\"]"))
            .find("the role 'queue' is hosted by two nodes") != std::string::npos);
  CHECK(error_of(nodes("", "", "[[node]]\nname = \"one\"\nendpoint = \"tcp://other:7700\"\nroles = []"))
            .find("two nodes are named 'one'") != std::string::npos);
}

TEST_CASE("with keys every node needs its public one, and a public key alone is a mistake") {
  const std::string key = "public_key = \"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\"";  // ZeroMQ's documentation has it.
  const std::string with_keys = "[mesh]\nkeys = \"keys\"\n";
  const auto config = read(with_keys + nodes(key, key, key));
  REQUIRE_MESSAGE(config, config.error().context);
  CHECK(config->keys.is_absolute());
  CHECK(config->nodes[2].public_key == "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7");
  CHECK(error_of(with_keys + nodes(key, key, "")).find("every [[node]] needs 'public_key'") != std::string::npos);
  CHECK(error_of(with_keys + nodes(key, key, "public_key = \"short\"")).find("every [[node]] needs 'public_key'") != std::string::npos);
  CHECK(error_of(nodes(key, "", "")).find("'public_key' says nothing without [mesh] 'keys'") != std::string::npos);
  CHECK(error_of(with_keys).find("'keys' are for nodes of several hosts") != std::string::npos);
}
