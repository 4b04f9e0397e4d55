// Formats by the names of the tensors, and every way in which they do not fit together.
#include "storage/coding/linear_parts.hpp"

#include <doctest/doctest.h>

#include <set>

namespace sangam {
namespace {

/// The parts of a map P of 6 x 40, where these tensors exist; low_rank.down has `rank` rows.
Result<LinearParts> find(const std::set<std::string, std::less<>>& names, bool is_table = false, std::int64_t rank = 3) {
  const auto lookup = [&](std::string_view name) -> std::optional<TensorView> {
    if (!names.contains(name)) return std::nullopt;
    return TensorView{DType::bf16, {rank, 40}, {}};
  };
  return find_linear_parts("P", {6, 40, is_table}, lookup);
}

std::string fault_of(const std::set<std::string, std::less<>>& names, bool is_table = false, std::int64_t rank = 3) {
  const auto parts = find(names, is_table, rank);
  return parts ? "none" : parts.error().context;
}

}  // namespace

TEST_CASE("a plain weight, and one that is missing, is P.weight of any floating type") {
  for (const auto& names : {std::set<std::string, std::less<>>{"P.weight"}, {}, {"P.bias", "P.weight.b5"}}) {
    const auto all = find(names).value().all();
    REQUIRE(all.size() == 1);
    CHECK(all[0].name == "P.weight");
    CHECK(all[0].shape == std::vector<std::int64_t>{6, 40});
    CHECK_FALSE(all[0].dtype.has_value());
    CHECK_FALSE(all[0].code.has_value());
  }
}

TEST_CASE("all parts of a corrected map are found with their types and shapes") {
  const auto parts = find({"P.weight.b3", "P.delta.b1", "P.row_scale", "P.row_shift", "P.low_rank.up", "P.low_rank.down"}).value();
  CHECK(parts.all().size() == 6);
  CHECK(parts.canonical.code == RowCode::b3);
  CHECK(parts.canonical.dtype == DType::u8);
  CHECK(parts.canonical.shape == std::vector<std::int64_t>{6, 2 + 2 * 13});
  CHECK(parts.delta.code == RowCode::b1);
  CHECK(parts.delta.shape == std::vector<std::int64_t>{6, 2 + 2 * 5});
  CHECK(parts.row_scale.dtype == DType::f32);
  CHECK(parts.row_shift.shape == std::vector<std::int64_t>{6});
  CHECK(parts.down.shape == std::vector<std::int64_t>{3, 40});
  CHECK(parts.up.shape == std::vector<std::int64_t>{6, 3});
}

TEST_CASE("parts that exclude or lack one another are refused by their names") {
  CHECK(fault_of({"P.weight", "P.weight.b8"}).find("P.weight and P.weight.b8") == 0);
  CHECK(fault_of({"P.weight.b2", "P.weight.b8"}).find("P.weight.b2 and P.weight.b8") == 0);
  CHECK(fault_of({"P.weight", "P.delta.b1", "P.delta.b4"}).find("P.delta.b1 and P.delta.b4") == 0);
  CHECK(fault_of({"P.weight", "P.low_rank.up"}).find("P.low_rank.down") == 0);
  CHECK(fault_of({"P.weight", "P.low_rank.down"}).find("P.low_rank.up") == 0);
  CHECK(fault_of({"P.weight", "P.low_rank.down", "P.low_rank.up"}, false, 0).find("P.low_rank.down") == 0);
  CHECK(fault_of({"P.weight", "P.delta.b1", "P.row_scale"}, true) == "none");
  CHECK(fault_of({"P.weight", "P.row_shift"}, true).find("P.row_shift") == 0);
  CHECK(fault_of({"P.weight", "P.low_rank.down", "P.low_rank.up"}, true).find("P.low_rank.down") == 0);
}

}  // namespace sangam
