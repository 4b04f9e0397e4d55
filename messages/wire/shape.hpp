// What the codec and the checks ask about a type: is it a name, a count, a list, a described struct?
#pragma once

#include <array>
#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"

namespace sangam::wire {

template <class T, template <class...> class Template>
constexpr bool kIs = false;
template <template <class...> class Template, class... Args>
constexpr bool kIs<Template<Args...>, Template> = true;

template <class T>
concept AName = kIs<T, Name>;
template <class T>
concept AQuantity = kIs<T, Quantity>;
template <class T>
concept AText = std::is_same_v<T, std::string>;
template <class T>
concept AScalar = std::is_arithmetic_v<T>;
template <class T>
concept ADuration =
    std::is_same_v<T, std::chrono::microseconds> || std::is_same_v<T, std::chrono::milliseconds>;
/// An enum with names, such as ErrorCode.
template <class T>
concept AChoice = boost::describe::has_describe_enumerators<T>::value;
/// An enum without names, such as RequestId: a number of its own type.
template <class T>
concept AnId = std::is_enum_v<T> && !AChoice<T>;
template <class T>
concept AStruct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
concept AUnion = kIs<T, std::variant>;
template <class T>
concept AShared = kIs<T, std::shared_ptr>;
template <class T>
concept AList = kIs<T, std::vector>;
template <class T>
constexpr bool kIsFixedBlob = false;
template <std::size_t N>
constexpr bool kIsFixedBlob<std::array<std::uint8_t, N>> = true;
template <class T>
concept AFixedBlob = kIsFixedBlob<T>;

template <class T>
using MembersOf = boost::describe::describe_members<T, boost::describe::mod_public>;

/// Calls `visit(descriptor)` for each member of a described struct, in order.
template <AStruct T, class Visit>
void for_each_member(Visit visit) {
  boost::mp11::mp_for_each<MembersOf<T>>(visit);
}

template <class T>
struct Pointee {
  using type = T;
};
template <class T>
struct Pointee<std::shared_ptr<const T>> {
  using type = T;
};
/// EnvelopePtr is to the wire what Envelope is.
template <class T>
using PointeeOf = typename Pointee<T>::type;

/// "TokensProduced" for sangam::TokensProduced, from what the compiler calls this function.
template <class T>
std::string_view struct_name() {
  std::string_view text =
      __PRETTY_FUNCTION__;  // "... [with T = sangam::Submit; ...]" or "... [T = sangam::Submit]"
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

}  // namespace sangam::wire
