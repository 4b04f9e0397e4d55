// Walks the structs of the vocabulary against the schema, both ways.
#include <set>

#include "bulk.capnp.h"
#include "mesh.capnp.h"
#include "messages/wire/bulk_frame.hpp"
#include "messages/wire/reflect.hpp"

namespace sangam::wire {
namespace {

using Problems = std::vector<std::string>;
using Which = capnp::schema::Type::Which;

std::string place(capnp::Schema schema, std::string_view member) {
  return std::string(schema.getShortDisplayName().cStr()) + "." + std::string(member);
}

template <AStruct T>
void walk_struct(capnp::StructSchema schema, Problems& problems);
template <class... Ts>
void walk_union(capnp::StructSchema schema, const std::variant<Ts...>*, Problems& problems);

/// What the schema must say for a member that holds one plain value.
template <class T>
constexpr Which plain_type() {
  if constexpr (std::is_same_v<T, bool>)
    return capnp::schema::Type::BOOL;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return capnp::schema::Type::UINT16;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return capnp::schema::Type::UINT32;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return capnp::schema::Type::UINT64;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return capnp::schema::Type::INT64;
  else if constexpr (std::is_same_v<T, double>)
    return capnp::schema::Type::FLOAT64;
  else if constexpr (AnId<T>)
    return plain_type<std::underlying_type_t<T>>();
  else if constexpr (AQuantity<T> || ADuration<T>)
    return capnp::schema::Type::INT64;
  else if constexpr (AText<T> || AName<T>)
    return capnp::schema::Type::TEXT;
  else if constexpr (AFixedBlob<T>)
    return capnp::schema::Type::DATA;
  else if constexpr (AChoice<T>)
    return capnp::schema::Type::ENUM;
  else if constexpr (AList<T>)
    return capnp::schema::Type::LIST;
  else
    return capnp::schema::Type::STRUCT;
}

template <AChoice T>
void walk_enum(capnp::EnumSchema schema, Problems& problems) {
  std::set<std::string> ours;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto enumerator) {
    const std::string name = field_name<void>(enumerator.name);
    ours.insert(name);
    auto found = schema.findEnumerantByName(name);
    KJ_IF_MAYBE (enumerant, found) {
      if (enumerant->getOrdinal() == unsigned(enumerator.value)) return;
    }
    problems.push_back(place(schema, name) + ": missing in the schema, or with another number");
  });
  for (auto enumerant : schema.getEnumerants()) {
    const std::string name = enumerant.getProto().getName().cStr();
    if (!ours.contains(name)) problems.push_back(place(schema, name) + ": missing in C++");
  }
}

template <class T>
void walk_type(capnp::Type type, const std::string& where, Problems& problems) {
  if (type.which() != plain_type<T>()) {
    problems.push_back(where + ": the schema has another type");
  } else if constexpr (AChoice<T>) {
    walk_enum<T>(type.asEnum(), problems);
  } else if constexpr (AList<T>) {
    walk_type<typename T::value_type>(type.asList().getElementType(), where + "[]", problems);
  } else if constexpr (AUnion<T>) {
    walk_union(type.asStruct(), static_cast<const T*>(nullptr), problems);
  } else if constexpr (AStruct<T>) {
    walk_struct<T>(type.asStruct(), problems);
  }
}

/// The schema's fields that no member of ours answers to.
void report_strangers(capnp::StructSchema schema, const std::set<std::string>& ours, Problems& problems) {
  for (auto field : schema.getFields()) {
    const std::string name = field.getProto().getName().cStr();
    if (!ours.contains(name)) problems.push_back(place(schema, name) + ": missing in C++");
  }
}

template <class T>
void walk_field(capnp::StructSchema schema, const std::string& name, Problems& problems) {
  auto found = schema.findFieldByName(name);
  KJ_IF_MAYBE (field, found) {
    walk_type<PointeeOf<T>>(field->getType(), place(schema, name), problems);
  } else {
    problems.push_back(place(schema, name) + ": missing in the schema");
  }
}

template <AStruct T>
void walk_struct(capnp::StructSchema schema, Problems& problems) {
  if (std::string_view(schema.getShortDisplayName().cStr()) != struct_name<T>()) {
    problems.push_back(place(schema, "") + ": is called " + std::string(struct_name<T>()) + " in C++");
  }
  std::set<std::string> ours;
  for_each_member<T>([&](auto member) {
    using Member = std::remove_cvref_t<decltype(std::declval<T&>().*member.pointer)>;
    const std::string name = field_name<Member>(member.name);
    ours.insert(name);
    walk_field<Member>(schema, name, problems);
  });
  report_strangers(schema, ours, problems);
}

template <class... Ts>
void walk_union(capnp::StructSchema schema, const std::variant<Ts...>*, Problems& problems) {
  std::set<std::string> ours;
  (
      [&] {
        const std::string name = field_name<void>(struct_name<PointeeOf<Ts>>());
        ours.insert(name);
        walk_field<Ts>(schema, name, problems);
      }(),
      ...);
  report_strangers(schema, ours, problems);
}

}  // namespace

std::vector<std::string> schema_mismatches() {
  Problems problems;
  walk_struct<Frame>(capnp::Schema::from<schema::Frame>(), problems);
  walk_struct<BulkFrame>(capnp::Schema::from<schema::BulkFrame>(), problems);
  return problems;
}

}  // namespace sangam::wire
