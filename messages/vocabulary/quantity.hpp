// Counts and names as types of their own, so that two kinds cannot be mixed up.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace sangam {

/// A count of one kind of thing. Two kinds do not add, compare or convert.
template <class Kind>
class Quantity {
 public:
  using Rep = std::int64_t;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_(count) {}

  [[nodiscard]] constexpr Rep count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return count_ += other.count_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return count_ -= other.count_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return Quantity(a.count_ * factor); }
  /// How many whole `b` fit into `a`.
  friend constexpr Rep operator/(Quantity a, Quantity b) { return a.count_ / b.count_; }
  friend std::ostream& operator<<(std::ostream& out, Quantity q) { return out << q.count_; }

 private:
  Rep count_ = 0;
};

using Bytes = Quantity<struct BytesKind>;
using Tokens = Quantity<struct TokensKind>;
using Pages = Quantity<struct PagesKind>;

/// Text that names one kind of thing. Names of two kinds do not compare or convert.
template <class Kind>
class Name {
 public:
  Name() = default;
  explicit Name(std::string text) : text_(std::move(text)) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

  auto operator<=>(const Name&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Name& name) { return out << name.text_; }

 private:
  std::string text_;
};

}  // namespace sangam

template <class Kind>
struct std::hash<sangam::Quantity<Kind>> {
  std::size_t operator()(sangam::Quantity<Kind> q) const { return std::hash<std::int64_t>{}(q.count()); }
};

template <class Kind>
struct std::hash<sangam::Name<Kind>> {
  std::size_t operator()(const sangam::Name<Kind>& name) const { return std::hash<std::string>{}(name.text()); }
};
