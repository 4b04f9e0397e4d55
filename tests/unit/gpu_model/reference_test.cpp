// Logits of small random models of every supported kind against HF transformers in fp32
// (tests/data/model/make.py).
#include <doctest/doctest.h>

#include "storage/checkpoint/model_folder.hpp"
#include "tests/unit/gpu_model/every_isa.hpp"
#include "tests/unit/gpu_model/json_file.hpp"
#include "tests/unit/gpu_model/paged_sequences.hpp"

namespace sangam::testing {
namespace {

/// Of the largest logit. Against all-fp32: keys and values in 16-bit floats carry 2^-11 each. Against a
/// reference that rounds them alike: sums in another order, which may turn single roundings to the other
/// side.
constexpr double kTolerance = 2e-3;
constexpr double kToleranceHalfKv = 4e-4;

/// The largest error over the reference's rows, relative to the largest logit.
double error_of(Model& model, const boost::json::value& reference, std::string_view logits_name) {
  const std::vector<TokenId> tokens = tokens_of(reference.at("tokens"));
  const auto& rows = reference.at("rows").as_array();
  PagedSequences sequences(model, 7, 40);
  const std::size_t s = sequences.add();
  double error = 0;
  double largest = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto end = std::size_t(rows[i].as_int64()) + 1;
    const auto logits =
        sequences.step({{s, {tokens.begin() + long(at), tokens.begin() + long(end)}, true}}).front();
    error = std::max(error, distance(logits, reference.at(logits_name).at(i)));
    for (const float logit : logits) largest = std::max(largest, double(std::abs(logit)));
    at = end;
  }
  return error / largest;
}

void check_all(Ops& ops) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SANGAM_SOURCE_DIR "/tests/data/model")) {
    if (!entry.is_directory()) continue;
    const ModelFolder folder = open_model(entry.path()).value();
    const auto lookup = [&](std::string_view name) { return folder.checkpoint.tensor(name); };
    auto model = Model::create(folder.config, lookup, ops).value();
    const boost::json::value reference = read_json(entry.path() / "reference.json");
    const double error = error_of(*model, reference, "logits");
    const double error_half_kv = error_of(*model, reference, "logits_half_kv");
    MESSAGE(ops.name(), " ", entry.path().filename().string(), ": error ", error, ", ", error_half_kv);
    CHECK(error < kTolerance);
    CHECK(error_half_kv < kToleranceHalfKv);
    ++models;
  }
  CHECK(models == 11);
}

TEST_CASE("logits of all four families and every rope scaling are those of HF transformers") {
  for_every_isa(2, check_all);
}

}  // namespace
}  // namespace sangam::testing
