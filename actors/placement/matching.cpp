// Shortest augmenting paths with potentials, and greedy matching for what is too large for them.
#include "actors/placement/matching.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// One row's way to a free column: Dijkstra over reduced costs, where a cost is the weight's negative.
class Assignment {
 public:
  explicit Assignment(const std::vector<std::vector<double>>& weights)
      : weights_(weights),
        columns_(weights.empty() ? 0 : weights.front().size()),
        row_potential_(weights.size(), 0.0),
        column_potential_(columns_, 0.0),
        row_of_(columns_, kNone) {}

  void add(std::size_t row) {
    distance_.assign(columns_, std::numeric_limits<double>::infinity());
    before_.assign(columns_, kNone);
    done_.assign(columns_, false);
    std::size_t column = kNone;  // Where the path stands; kNone: at the row that is new.
    double length = 0.0;
    do {
      const std::size_t from = column == kNone ? row : row_of_[column];
      relax(from, column, length);
      column = nearest();
      length = distance_[column];
      done_[column] = true;
    } while (row_of_[column] != kNone);
    raise_potentials(row, length);
    while (column != kNone) {
      const std::size_t previous = before_[column];
      row_of_[column] = previous == kNone ? row : row_of_[previous];
      column = previous;
    }
  }

  [[nodiscard]] std::vector<std::size_t> columns_by_row() const {
    std::vector<std::size_t> columns(weights_.size(), kNone);
    for (std::size_t c = 0; c < columns_; ++c) {
      if (row_of_[c] != kNone) columns[row_of_[c]] = c;
    }
    return columns;
  }

 private:
  void relax(std::size_t row, std::size_t via, double length) {
    for (std::size_t c = 0; c < columns_; ++c) {
      if (done_[c]) continue;
      const double through = length - weights_[row][c] - row_potential_[row] - column_potential_[c];
      if (through >= distance_[c]) continue;
      distance_[c] = through;
      before_[c] = via;
    }
  }

  [[nodiscard]] std::size_t nearest() const {
    std::size_t best = kNone;
    for (std::size_t c = 0; c < columns_; ++c) {
      if (!done_[c] && (best == kNone || distance_[c] < distance_[best])) best = c;
    }
    return best;
  }

  void raise_potentials(std::size_t row, double length) {
    row_potential_[row] += length;
    for (std::size_t c = 0; c < columns_; ++c) {
      if (!done_[c]) continue;
      column_potential_[c] -= length - distance_[c];
      if (row_of_[c] != kNone) row_potential_[row_of_[c]] += length - distance_[c];
    }
  }

  const std::vector<std::vector<double>>& weights_;
  std::size_t columns_;
  std::vector<double> row_potential_;
  std::vector<double> column_potential_;
  std::vector<std::size_t> row_of_;  // By column.
  std::vector<double> distance_;
  std::vector<std::size_t> before_;  // The column before on the path; kNone: the new row.
  std::vector<bool> done_;
};

/// Rows and columns in groups that no overlap connects, by union-find over rows, then columns.
class Groups {
 public:
  Groups(std::size_t rows, std::size_t columns) : parent_(rows + columns) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

using Columns = std::vector<std::size_t>;

void match_greedily(std::vector<Overlap> overlaps, Columns& column_of, std::vector<bool>& is_taken) {
  std::stable_sort(overlaps.begin(), overlaps.end(),
                   [](const Overlap& a, const Overlap& b) { return a.weight > b.weight; });
  for (const Overlap& o : overlaps) {
    if (column_of[o.row] != kNone || is_taken[o.column]) continue;
    column_of[o.row] = o.column;
    is_taken[o.column] = true;
  }
}

/// The place of each value of `values` once they are sorted and distinct.
std::map<std::size_t, std::size_t> ranks(std::vector<std::size_t> values) {
  std::sort(values.begin(), values.end());
  std::map<std::size_t, std::size_t> rank;
  for (const std::size_t value : values) rank.emplace(value, rank.size());
  return rank;
}

void match_exactly(const std::vector<Overlap>& overlaps, Columns& column_of, std::vector<bool>& is_taken) {
  std::vector<std::size_t> rows;
  std::vector<std::size_t> columns;
  for (const Overlap& o : overlaps) {
    rows.push_back(o.row);
    columns.push_back(o.column);
  }
  const auto row_rank = ranks(std::move(rows));
  const auto column_rank = ranks(std::move(columns));
  // A column more for each row: to stay without is allowed.
  std::vector<std::vector<double>> weights(row_rank.size(),
                                           std::vector<double>(column_rank.size() + row_rank.size(), 0.0));
  for (const Overlap& o : overlaps) weights[row_rank.at(o.row)][column_rank.at(o.column)] = o.weight;
  const Columns best = best_assignment(weights);
  for (const Overlap& o : overlaps) {
    if (best[row_rank.at(o.row)] != column_rank.at(o.column)) continue;
    column_of[o.row] = o.column;
    is_taken[o.column] = true;
  }
}

}  // namespace

std::vector<std::size_t> best_assignment(const std::vector<std::vector<double>>& weights) {
  SANGAM_ASSERT(weights.empty() || weights.size() <= weights.front().size(), weights.size());
  Assignment assignment(weights);
  for (std::size_t row = 0; row < weights.size(); ++row) assignment.add(row);
  return assignment.columns_by_row();
}

std::vector<std::size_t> match(std::size_t rows, std::size_t columns, std::vector<Overlap> overlaps,
                               std::size_t exact_max) {
  SANGAM_ASSERT(rows <= columns, rows, columns);
  Groups groups(rows, columns);
  for (const Overlap& o : overlaps) groups.join(o.row, rows + o.column);
  std::map<std::size_t, std::vector<Overlap>> by_group;
  for (const Overlap& o : overlaps) by_group[groups.find(o.row)].push_back(o);
  Columns column_of(rows, kNone);
  std::vector<bool> is_taken(columns, false);
  for (const auto& [group, members] : by_group) {
    std::vector<std::size_t> named;
    for (const Overlap& o : members) named.push_back(o.column);
    if (ranks(std::move(named)).size() <= exact_max) {
      match_exactly(members, column_of, is_taken);
    } else {
      match_greedily(members, column_of, is_taken);
    }
  }
  std::size_t next = 0;
  for (std::size_t& column : column_of) {
    if (column != kNone) continue;
    while (is_taken[next]) ++next;
    column = next;
    is_taken[next] = true;
  }
  return column_of;
}

}  // namespace sangam
