// The tables of the planners: what they switch on, who then tells whom, and how each mistake is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/mesh_config.hpp"

using namespace sangam;

namespace {

/// Writes a configuration into a folder of its own and reads it.
Result<MeshConfig> read(const std::string& text) {
  const auto folder = std::filesystem::temp_directory_path() / ("sangam-planners-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "mesh.toml";
  std::ofstream(path) << text;
  auto config = read_mesh_config(path.string(), std::filesystem::path(SANGAM_SOURCE_DIR) / "models");
  std::filesystem::remove_all(folder);
  return config;
}

std::string error_of(const std::string& text) {
  const auto config = read(text);
  REQUIRE_FALSE(config);
  const auto& context = config.error().context;
  const auto name = context.find("mesh.toml");
  return name == std::string::npos ? context : context.substr(name);
}

bool is_role(const MeshConfig& config, const std::string& role) {
  const auto roles = roles_of(config);
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

const ActorName kGateway("gateway/1"), kLifecycle("lifecycle"), kPlacement("placement"), kAutoscaler("autoscaler");

}  // namespace

TEST_CASE("without their tables no planner is hosted") {
  const auto config = read("");
  REQUIRE(config);
  for (const char* role : {"oracle", "placement", "autoscaler"}) {
    CAPTURE(role);
    CHECK_FALSE(is_role(*config, role));
  }
}

TEST_CASE("an empty table switches its planner on, with what it is by default") {
  const auto config = read("[oracle]\n[placement]\n[autoscaler]\n[[worker]]\nname = \"worker/a\"\npage = \"64KiB\"\n");
  REQUIRE(config);
  for (const char* role : {"oracle", "placement", "autoscaler"}) {
    CAPTURE(role);
    CHECK(is_role(*config, role));
  }
  CHECK(config->oracle->hearers == std::vector<ActorName>{kGateway, kAutoscaler, kPlacement});
  CHECK(config->oracle->device.page == Bytes(65'536));
  CHECK(config->placement->tell == std::vector<ActorName>{kLifecycle, kAutoscaler});
  CHECK(config->placement->policy.name == "potential");
  CHECK(config->autoscaler->hearers == std::vector<ActorName>{kLifecycle, kPlacement});
  CHECK((config->autoscaler->sizing == elasticity));
  CHECK((config->autoscaler->budget == proportional));
}

TEST_CASE("an autoscaler alone tells the lifecycle only, and is the only one to be told") {
  const auto config = read("[oracle]\n[autoscaler]\n");
  REQUIRE(config);
  CHECK(config->oracle->hearers == std::vector<ActorName>{kGateway, kAutoscaler});
  CHECK(config->autoscaler->hearers == std::vector<ActorName>{kLifecycle});
  CHECK_FALSE(is_role(*config, "placement"));
}

TEST_CASE("what operators set arrives in the options") {
  const auto config = read(R"(
[oracle]
every = "250ms"
slow = "1m"
read_bytes_per_second = 2e10
[placement]
policy = "first_fit_decreasing"
interval = "10s"
models_max = 6
busy_max = 0.8
size_enter = 0.4
[autoscaler]
policy = "per_app"
budget = "marginal"
idle_to_zero = "20s"
per_app_ongoing = 3
)");
  REQUIRE(config);
  CHECK(config->oracle->every == Millis(250));
  CHECK(config->oracle->slow == Millis(60'000));
  CHECK(config->oracle->device.bytes_per_second == 2e10);
  CHECK(config->placement->policy.name == "first_fit_decreasing");
  CHECK(config->placement->interval == Millis(10'000));
  CHECK(config->placement->models_max == 6);
  CHECK(config->placement->busy_max == 0.8);
  CHECK(config->placement->pools.size_enter == 0.4);
  CHECK((config->autoscaler->sizing == per_app));
  CHECK((config->autoscaler->budget == marginal));
  CHECK(config->autoscaler->idle_to_zero == Millis(20'000));
  CHECK(config->autoscaler->sizes.per_app_ongoing == 3);
}

TEST_CASE("a mistake in a planner's table is named with its line and the remedy") {
  CHECK(error_of("[oracle]\nevry = \"1s\"\n") == "mesh.toml:2: unknown key 'evry' in [oracle]; did you mean 'every'?");
  CHECK(error_of("[oracle]\n[placement]\ninterwal = \"1s\"\n") ==
        "mesh.toml:3: unknown key 'interwal' in [placement]; did you mean 'interval'?");
  CHECK(error_of("[oracle]\nfast = \"40s\"\nslow = \"30s\"\n") ==
        "mesh.toml:3: the windows must be in order: fast <= slow <= past");
  CHECK(error_of("[oracle]\n[autoscaler]\nattainment = 1.5\n") ==
        "mesh.toml:3: 'attainment' must be above 0, and 1 at most");
  CHECK(error_of("[oracle]\n[placement]\nmodels_max = 0\n") == "mesh.toml:3: 'models_max' must be at least 1");
  const std::string policy = error_of("[oracle]\n[autoscaler]\npolicy = \"elastic\"\n");
  CHECK(policy.starts_with("mesh.toml:3: "));
  CHECK(policy.find("elasticity_gp") != std::string::npos);
  const std::string placement = error_of("[oracle]\n[placement]\npolicy = \"potent\"\n");
  CHECK(placement.starts_with("mesh.toml:3: "));
  CHECK(placement.find("potential") != std::string::npos);
}

TEST_CASE("a planner without an oracle is refused, and so are workers whose pages differ") {
  CHECK(error_of("[autoscaler]\n") ==
        "mesh.toml:1: [autoscaler] plans by what an oracle foresees; add a table [oracle]");
  CHECK(error_of("[oracle]\n[[worker]]\nname = \"worker/1\"\npage = \"64KiB\"\n[[worker]]\nname = \"worker/2\"\n")
            .find("the same 'page'") != std::string::npos);
  CHECK(error_of("[[node]]\nname = \"a\"\nendpoint = \"tcp://h:1\"\nroles = [\"oracle\"]\n")
            .find("'oracle' is no role of this mesh") != std::string::npos);
}

TEST_CASE("profiles are what the oracle begins with; a bad one is named with its field") {
  const auto folder = std::filesystem::temp_directory_path() / ("sangam-oracle-profiles-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string head = R"({"model":"A-arith","devices":1,"weights_bytes":10,"kv_bytes_per_token":20,"costs":{)";
  const std::string costs = R"("step_us":2000,"prompt_us":100,"prompt_token_us":5,"sequence_us":30,"context_token_us":0)";
  std::ofstream(folder / "A-arith.json") << head << costs << "}}";
  const std::string table = "[oracle]\nprofiles = \"" + folder.string() + "\"\n";
  const auto config = read(table);
  REQUIRE(config);
  const ModelPrior& prior = config->oracle->priors.at(ModelId("A-arith"));
  CHECK(prior.step_fixed == doctest::Approx(0.002));
  CHECK(prior.sequence == doctest::Approx(3e-5));
  CHECK(prior.weights == Bytes(10));
  std::ofstream(folder / "A-arith.json") << head << "}}";
  const std::string error = error_of(table);
  CHECK(error.starts_with("mesh.toml:2: "));
  CHECK(error.find("A-arith.json: costs: step_us: is missing") != std::string::npos);
  std::filesystem::remove_all(folder);
  CHECK(error_of(table).starts_with("mesh.toml:2: "));
}
