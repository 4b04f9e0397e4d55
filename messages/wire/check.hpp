// Bounds that every value on the wire keeps, by its type: names are not empty and short, texts and lists are
// limited, counts are not negative, durations are sane, enumerants are known.
#pragma once

#include <string>

#include "messages/wire/codec.hpp"
#include "messages/wire/shape.hpp"

namespace sangam::wire {

template <class T>
[[nodiscard]] std::string wrong_with(const T& value);

/// The first member that breaks its bounds and how, as "sampling.max_tokens is negative: -1".
template <AStruct T>
[[nodiscard]] std::string wrong_with_members(const T& value) {
  std::string wrong;
  for_each_member<T>([&](auto member) {
    if (!wrong.empty()) return;
    std::string inner = wrong_with(value.*member.pointer);
    if (!inner.empty()) wrong = member.name + (inner.front() == ' ' ? inner : "." + inner);
  });
  return wrong;
}

template <class Choice>
[[nodiscard]] bool is_known(Choice choice) {
  bool known = false;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Choice>>(
      [&](auto enumerator) { known = known || enumerator.value == choice; });
  return known;
}

template <class Kind>
[[nodiscard]] std::string wrong_with_name(const Name<Kind>& name) {
  const std::size_t size = name.text().size();
  // Only a tenant may be anonymous.
  if (size == 0 && !std::is_same_v<Name<Kind>, TenantId>) return " is empty; a name has 1 to 255 bytes";
  if (size > kNameBytesMax) return " has " + std::to_string(size) + " bytes; a name has 1 to 255";
  return {};
}

template <class T>
[[nodiscard]] std::string wrong_with_list(const T& list) {
  // Scalars have no bounds of their own, and the frame limits how many there are.
  if constexpr (!AScalar<typename T::value_type>) {
    for (const auto& element : list) {
      if (std::string inner = wrong_with(element); !inner.empty()) return inner;
    }
  }
  return {};
}

template <class T>
[[nodiscard]] std::string wrong_with(const T& value) {
  if constexpr (AName<T>) {
    return wrong_with_name(value);
  } else if constexpr (AText<T>) {
    if (value.size() <= kTextBytesMax) return {};
    return " has " + std::to_string(value.size()) + " bytes; the limit is " + std::to_string(kTextBytesMax);
  } else if constexpr (AQuantity<T>) {
    return value.count() >= 0 ? std::string() : " is negative: " + std::to_string(value.count());
  } else if constexpr (ADuration<T>) {
    if (value <= kDurationMax && value >= -kDurationMax) return {};
    return " is longer than a year: " + std::to_string(value.count());
  } else if constexpr (AChoice<T>) {
    return is_known(value) ? std::string() : " is not a known enumerant: " + std::to_string(unsigned(value));
  } else if constexpr (AShared<T>) {
    return value ? wrong_with(*value) : " is null";
  } else if constexpr (AStruct<T>) {
    return wrong_with_members(value);
  } else if constexpr (AUnion<T>) {
    return std::visit([](const auto& alternative) { return wrong_with(alternative); }, value);
  } else if constexpr (AList<T>) {
    return wrong_with_list(value);
  } else {
    return {};
  }
}

}  // namespace sangam::wire
