// What each slot could become, what that would take, and how much harm is to be expected of it.
#pragma once

#include <functional>
#include <string>

#include "actors/merger/pool/shelf.hpp"
#include "actors/merger/search/allocation.hpp"

namespace sangam::merging {

/// What is added to a canonical.
struct Correction {
  std::optional<RowCode> delta{};
  std::int32_t rank = 0;
  bool affine = false;
};

/// The forms that a search may choose from, beside a slot's own weights as they are.
struct FormMenu {
  std::vector<RowCode> own{RowCode::b8, RowCode::b4, RowCode::b3, RowCode::b2};
  std::vector<std::optional<RowCode>> canonicals{RowCode::b4, RowCode::b3, RowCode::b2};  ///< None: as bf16.
  std::vector<Correction> corrections{{}, {RowCode::b1}, {RowCode::b2}, {RowCode::b3}};
  bool subsets = false;  ///< Also canonicals of some members of a group only, nearest first.
};

/// Of a long piece of work: what it is at, and how much is done.
using Progress = std::function<void(const std::string& phase, double share)>;

/// Forges every form of every slot and measures two things for each model on the profile's items: how much a known
/// error in one slot endangers its answers (a code of two bits there, all else as it is), and how much one form
/// everywhere does. A form's harm at one slot is its part of the latter, by error and sensitivity: so the harm of many
/// slots adds up to what was measured, also where each alone does nothing.
[[nodiscard]] Result<PoolOptions> survey(Shelf& shelf, const FormMenu& menu, int threads, const Progress& progress);

}  // namespace sangam::merging
