// The one codec of all messages: members of described structs to and from the schema's fields of the same
// names, through Cap'n Proto's dynamic API. Only codec.cpp and schema_walk.cpp include this.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "messages/schema/capnp.hpp"
#include "messages/vocabulary/assert.hpp"
#include "messages/wire/codec.hpp"
#include "messages/wire/shape.hpp"

namespace sangam::wire {

using Field = capnp::StructSchema::Field;
using Writer = capnp::DynamicStruct::Builder;
using Reader = capnp::DynamicStruct::Reader;

/// Thrown where a frame makes no sense, caught in decode().
struct Nonsense {
  Refusal refusal;
};

/// "ttft_in" of type Millis is "ttftInMillis" in the schema; "TokensProduced" is "tokensProduced".
template <class T>
std::string field_name(std::string_view cpp_name) {
  std::string name;
  bool raise = false;
  for (char c : cpp_name) {
    if (c == '_') {
      raise = true;
      continue;
    }
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    if (name.empty() && upper) c = char(c - 'A' + 'a');
    if (raise && lower) c = char(c - 'a' + 'A');
    raise = false;
    name += c;
  }
  if (std::is_same_v<T, std::chrono::milliseconds>) name += "Millis";
  if (std::is_same_v<T, std::chrono::microseconds>) name += "Micros";
  return name;
}

inline Field field_named(capnp::StructSchema schema, const std::string& name) {
  KJ_IF_MAYBE (field, schema.findFieldByName(name)) return *field;
  SANGAM_ASSERT(false, "schema lacks a field", schema.getShortDisplayName().cStr(), name);
  std::abort();
}

/// The schema's field for each member of T, in T's order. A C++ type has one schema type, so one look-up
/// serves for the life of the process.
template <AStruct T>
const std::vector<Field>& fields_of(capnp::StructSchema schema) {
  static const std::vector<Field> fields = [&] {
    std::vector<Field> found;
    for_each_member<T>([&](auto member) {
      using Member = std::remove_cvref_t<decltype(std::declval<T&>().*member.pointer)>;
      found.push_back(field_named(schema, field_name<Member>(member.name)));
    });
    return found;
  }();
  return fields;
}

/// The union's field for each alternative, in the variant's order.
template <class... Ts>
const std::vector<Field>& fields_of(capnp::StructSchema schema, const std::variant<Ts...>*) {
  static const std::vector<Field> fields = {
      field_named(schema, field_name<PointeeOf<Ts>>(struct_name<PointeeOf<Ts>>()))...};
  return fields;
}

template <AStruct T>
void put_members(Writer to, const T& value);
template <class T>
void put(Writer to, const Field& field, const T& value);

template <class T>
void put_list(Writer to, const Field& field, const std::vector<T>& list) {
  if (list.empty()) return;  // An absent list reads as empty.
  SANGAM_ASSERT(list.size() <= kFrameMax.count(), list.size());
  auto built = to.init(field, unsigned(list.size())).template as<capnp::DynamicList>();
  if constexpr (AScalar<T>) {
    auto scalars = built.template as<capnp::List<T>>();
    for (unsigned i = 0; i < list.size(); ++i) scalars.set(i, list[i]);
  } else if constexpr (AName<T>) {
    auto texts = built.template as<capnp::List<capnp::Text>>();
    for (unsigned i = 0; i < list.size(); ++i) texts.set(i, {list[i].text().c_str(), list[i].text().size()});
  } else {
    for (unsigned i = 0; i < list.size(); ++i) {
      put_members(built[i].template as<capnp::DynamicStruct>(), list[i]);
    }
  }
}

template <class T>
void put_union(Writer to, const T& value) {
  const std::vector<Field>& fields = fields_of(to.getSchema(), &value);
  const Field& chosen = fields[value.index()];
  std::visit([&](const auto& alternative) { put(to, chosen, alternative); }, value);
}

template <class T>
void put(Writer to, const Field& field, const T& value) {
  if constexpr (AScalar<T>) {
    to.set(field, value);
  } else if constexpr (AnId<T>) {
    to.set(field, std::underlying_type_t<T>(value));
  } else if constexpr (AQuantity<T> || ADuration<T>) {
    to.set(field, std::int64_t(value.count()));
  } else if constexpr (AText<T>) {
    if (!value.empty()) to.set(field, capnp::Text::Reader(value.c_str(), value.size()));
  } else if constexpr (AName<T>) {
    put(to, field, value.text());
  } else if constexpr (AChoice<T>) {
    to.set(field, capnp::DynamicEnum(field.getType().asEnum(), std::uint16_t(value)));
  } else if constexpr (AShared<T>) {
    put(to, field, *value);
  } else if constexpr (AUnion<T>) {
    put_union(to.get(field).template as<capnp::DynamicStruct>(), value);
  } else if constexpr (AStruct<T>) {
    put_members(to.init(field).template as<capnp::DynamicStruct>(), value);
  } else if constexpr (AFixedBlob<T>) {
    if (value != T{}) to.set(field, capnp::Data::Reader(value.data(), value.size()));
  } else {
    put_list(to, field, value);
  }
}

template <AStruct T>
void put_members(Writer to, const T& value) {
  const Field* field = fields_of<T>(to.getSchema()).data();
  for_each_member<T>([&](auto member) { put(to, *field++, value.*member.pointer); });
}

template <AStruct T>
void take_members(Reader from, T& value);
template <class T>
void take(Reader from, const Field& field, T& value);

template <class T>
void take_list(Reader from, const Field& field, std::vector<T>& list) {
  auto read = from.get(field).template as<capnp::DynamicList>();
  if constexpr (AScalar<T>) {
    auto scalars = read.template as<capnp::List<T>>();
    list.resize(scalars.size());
    for (unsigned i = 0; i < list.size(); ++i) list[i] = scalars[i];
  } else if constexpr (AName<T>) {
    for (const auto text : read.template as<capnp::List<capnp::Text>>())
      list.emplace_back(std::string(text.cStr(), text.size()));
  } else {
    // Grows with what was really read: a claimed length alone takes no memory.
    for (unsigned i = 0; i < read.size(); ++i) {
      take_members(read[i].template as<capnp::DynamicStruct>(), list.emplace_back());
    }
  }
}

template <class T>
void take_fixed_blob(capnp::Data::Reader bytes, T& value) {
  if (bytes.size() != 0 && bytes.size() != value.size()) {
    throw Nonsense{{Fault::invalid_value, "an id or a hash has " + std::to_string(bytes.size()) +
                                              " bytes instead of " + std::to_string(value.size())}};
  }
  std::copy(bytes.begin(), bytes.end(), value.begin());
}

template <class T>
void take_union(Reader from, T& value) {
  const std::vector<Field>& fields = fields_of(from.getSchema(), &value);
  KJ_IF_MAYBE (chosen, from.which()) {
    std::size_t index = 0;
    while (index < fields.size() && fields[index].getIndex() != chosen->getIndex()) ++index;
    SANGAM_ASSERT(index < fields.size(), "a union member without an alternative", chosen->getIndex());
    boost::mp11::mp_with_index<std::variant_size_v<T>>(
        index, [&](auto i) { take(from, fields[i], value.template emplace<i>()); });
    return;
  }
  throw Nonsense{{Fault::unknown_message, std::string("an unknown member of the union ") +
                                              from.getSchema().getShortDisplayName().cStr()}};
}

template <class T>
void take_shared(Reader from, const Field& field, std::shared_ptr<const T>& value) {
  auto made = std::make_shared<T>();
  take(from, field, *made);
  value = std::move(made);
}

template <class T>
void take(Reader from, const Field& field, T& value) {
  if constexpr (AScalar<T>) {
    value = from.get(field).as<T>();
  } else if constexpr (AnId<T>) {
    value = T{from.get(field).as<std::underlying_type_t<T>>()};
  } else if constexpr (AQuantity<T> || ADuration<T>) {
    value = T(from.get(field).as<std::int64_t>());
  } else if constexpr (AText<T>) {
    auto text = from.get(field).as<capnp::Text>();
    value.assign(text.cStr(), text.size());
  } else if constexpr (AName<T>) {
    auto text = from.get(field).as<capnp::Text>();
    value = T(std::string(text.cStr(), text.size()));
  } else if constexpr (AChoice<T>) {
    value = T(from.get(field).as<capnp::DynamicEnum>().getRaw());
  } else if constexpr (AShared<T>) {
    take_shared(from, field, value);
  } else if constexpr (AUnion<T>) {
    take_union(from.get(field).template as<capnp::DynamicStruct>(), value);
  } else if constexpr (AStruct<T>) {
    take_members(from.get(field).template as<capnp::DynamicStruct>(), value);
  } else if constexpr (AFixedBlob<T>) {
    take_fixed_blob(from.get(field).as<capnp::Data>(), value);
  } else {
    take_list(from, field, value);
  }
}

template <AStruct T>
void take_members(Reader from, T& value) {
  const Field* field = fields_of<T>(from.getSchema()).data();
  for_each_member<T>([&](auto member) { take(from, *field++, value.*member.pointer); });
}

}  // namespace sangam::wire
