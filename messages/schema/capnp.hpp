// Every include of Cap'n Proto passes here. Version 0.9.2 drops operator==(const char*, StringPtr) in C++20
// and relies on reversed candidates, which P2468R2 (clang >= 16, gcc >= 13) switches off because StringPtr
// also declares operator!=. This puts them back.
#pragma once

#include <kj/string.h>

#if __cpp_impl_three_way_comparison
namespace kj {
// The bodies name the member: `b == a` would pick this very function reversed and recurse for ever.
inline bool operator==(const char* a, const StringPtr& b) {
  return b.operator==(StringPtr(a));
}
inline bool operator!=(const char* a, const StringPtr& b) {
  return !b.operator==(StringPtr(a));
}
inline bool operator==(const char* a, const String& b) {
  return StringPtr(b).operator==(StringPtr(a));
}
inline bool operator!=(const char* a, const String& b) {
  return !StringPtr(b).operator==(StringPtr(a));
}
}  // namespace kj
#endif

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/schema.h>
#include <capnp/serialize.h>
