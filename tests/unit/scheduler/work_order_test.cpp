// Sums over an order, held against a plain list.
#include "actors/scheduler/work_order.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace sangam;

namespace {

void check_same(const PrefillWork& found, const PrefillWork& right) {
  CHECK(found.prefills == right.prefills);
  CHECK(found.tokens == right.tokens);
  CHECK(found.tokens_squared == right.tokens_squared);
}

}  // namespace

TEST_CASE("work is the sum of what each prefill takes") {
  WorkOrder order;
  order.insert({1, 0}, Tokens(10));
  order.insert({2, 1}, Tokens(20));
  const PrefillCost cost{5.0, 2.0, 0.5};
  // 5 + 2 * 10 + 0.5 * 100 = 75 and 5 + 2 * 20 + 0.5 * 400 = 245.
  CHECK(order.all().micros(cost) == doctest::Approx(320.0));
  CHECK(order.before({2, 1}).micros(cost) == doctest::Approx(75.0));
  CHECK(order.before({1, 0}).micros(PrefillCost{}) == 0.0);
}

TEST_CASE("after any changes, what is before a place is what a list says") {
  const std::uint64_t seed = 4711;
  MESSAGE("seed ", seed);
  std::mt19937_64 random(seed);
  WorkOrder order;
  std::map<WorkOrder::Key, std::int64_t> list;
  for (int step = 0; step < 4000; ++step) {
    const WorkOrder::Key key{random() % 50, random() % 50};
    const auto known = list.find(key);
    if (known != list.end()) {
      order.erase(key);
      list.erase(known);
    } else if (random() % 3 > 0) {
      const auto tokens = std::int64_t(random() % 1000);
      order.insert(key, Tokens(tokens));
      list[key] = tokens;
    } else {
      order.erase(key);  // Not there: nothing happens.
    }
    const WorkOrder::Key place{random() % 50, random() % 50};
    PrefillWork right, all;
    for (const auto& [at, tokens] : list) {
      const PrefillWork own{1.0, double(tokens), double(tokens) * double(tokens)};
      all += own;
      if (at < place) right += own;
    }
    check_same(order.before(place), right);
    check_same(order.all(), all);
  }
  order.clear();
  check_same(order.all(), {});
}
