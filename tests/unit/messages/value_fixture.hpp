// Random values of every message and a comparison of any two, both by description of the structs.
#pragma once

#include <bit>
#include <random>

#include "messages/wire/frame.hpp"
#include "messages/wire/shape.hpp"

namespace sangam::testing {

using Random = std::mt19937_64;

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else if constexpr (wire::AShared<T>) {
    return same(*a, *b);
  } else if constexpr (wire::AUnion<T>) {
    return a.index() == b.index() &&
           std::visit([&]<class M>(const M& member) { return same(member, std::get<M>(b)); }, a);
  } else if constexpr (wire::AStruct<T>) {
    bool equal = true;
    wire::for_each_member<T>([&](auto m) { equal = equal && same(a.*m.pointer, b.*m.pointer); });
    return equal;
  } else if constexpr (wire::AList<T>) {
    bool equal = a.size() == b.size();
    for (std::size_t i = 0; equal && i < a.size(); ++i) equal = same(a[i], b[i]);
    return equal;
  } else {
    return a == b;
  }
}

inline std::string random_text(Random& random, std::size_t least, std::size_t most) {
  std::string text(least + random() % (most - least + 1), ' ');
  for (char& c : text) c = char(random() % 256);
  return text;
}

/// Any value that the wire accepts; small and large ones alike.
template <class T>
void randomize(T& value, Random& random) {
  if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(random());
  } else if constexpr (wire::AScalar<T>) {
    value = T(random() >> (random() % 64));
  } else if constexpr (wire::AnId<T>) {
    value = T{random() >> (random() % 64)};
  } else if constexpr (wire::AQuantity<T>) {
    value = T(std::int64_t(random() >> (1 + random() % 63)));
  } else if constexpr (wire::ADuration<T>) {
    value = T(std::int64_t(random() % 1'000'000'000) - 500'000'000);
  } else if constexpr (wire::AText<T>) {
    value = random_text(random, 0, 300);
  } else if constexpr (wire::AName<T>) {
    value = T(random_text(random, 1, 255));
  } else if constexpr (wire::AChoice<T>) {
    value = T(random() % boost::mp11::mp_size<boost::describe::describe_enumerators<T>>::value);
  } else if constexpr (wire::AShared<T>) {
    auto made = std::make_shared<wire::PointeeOf<T>>();
    randomize(*made, random);
    value = std::move(made);
  } else if constexpr (wire::AUnion<T>) {
    boost::mp11::mp_with_index<std::variant_size_v<T>>(
        random() % std::variant_size_v<T>, [&](auto i) { randomize(value.template emplace<i>(), random); });
  } else if constexpr (wire::AStruct<T>) {
    wire::for_each_member<T>([&](auto m) { randomize(value.*m.pointer, random); });
  } else if constexpr (wire::AList<T>) {
    value.resize(random() % 8);
    for (auto& element : value) randomize(element, random);
  } else {
    for (auto& byte : value) byte = std::uint8_t(random());
  }
}

inline wire::Frame random_frame(Random& random) {
  wire::Frame frame;
  randomize(frame.body, random);
  if (auto* letter = std::get_if<EnvelopePtr>(&frame.body)) {
    auto counted = std::make_shared<Envelope>(**letter);
    counted->id |= 1;
    *letter = std::move(counted);
  }
  return frame;
}

}  // namespace sangam::testing
