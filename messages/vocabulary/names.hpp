// Who is who: ids and names that messages carry.
#pragma once

#include <cstdint>
#include <ostream>

#include "messages/vocabulary/quantity.hpp"

namespace sangam {

/// An actor's address in the mesh: "gateway/1", "queue/A-arith", "scheduler", "worker/1".
using ActorName = Name<struct ActorKind>;
/// A node is one process of the mesh: "gateway-1".
using NodeName = Name<struct NodeKind>;
/// As clients spell it; may contain slashes.
using ModelId = Name<struct ModelKind>;
/// Whom quotas, fair shares and the prefix cache's salt belong to.
using TenantId = Name<struct TenantKind>;

/// Chosen by the gateway: its place among gateways (8 bits), its incarnation (24), a counter (32). Never reused.
enum class RequestId : std::uint64_t {};
/// Rises with every start of a process or actor under one name; kept in the store.
enum class Incarnation : std::uint64_t {};
/// An index into a model's vocabulary.
using TokenId = std::uint32_t;
/// Which try at a request this is; the gateway counts from 1.
using Attempt = std::uint32_t;

inline std::ostream& operator<<(std::ostream& out, RequestId id) { return out << std::uint64_t(id); }
inline std::ostream& operator<<(std::ostream& out, Incarnation i) { return out << std::uint64_t(i); }

[[nodiscard]] inline ActorName queue_of(const ModelId& model) { return ActorName("queue/" + model.text()); }

}  // namespace sangam
