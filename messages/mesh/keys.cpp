// Keys by ZeroMQ's functions for CURVE (RFC 26) and Z85 (RFC 32).
#include "messages/mesh/keys.hpp"

#include <array>
#include <cstdint>
#include <zmq.hpp>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::size_t kKeySize = 40;
constexpr std::size_t kRawKeySize = 32;
using KeyText = std::array<char, kKeySize + 1>;

}  // namespace

MeshKeys new_mesh_keys() {
  KeyText public_key{}, secret_key{};
  const int rc = zmq_curve_keypair(public_key.data(), secret_key.data());
  SANGAM_ASSERT(rc == 0, "libzmq was built without CURVE", zmq_errno());
  return {public_key.data(), secret_key.data()};
}

bool is_mesh_key(const std::string& text) {
  std::array<std::uint8_t, kRawKeySize> raw{};
  return text.size() == kKeySize && zmq_z85_decode(raw.data(), text.c_str()) != nullptr;
}

Result<MeshKeys> mesh_keys_of(const std::string& secret_key) {
  KeyText public_key{};
  if (!is_mesh_key(secret_key) || zmq_curve_public(public_key.data(), secret_key.c_str()) != 0) {
    return make_error(ErrorCode::invalid_input,
                      "no secret key: it has " + std::to_string(secret_key.size()) +
                          " characters and should be " + std::to_string(kKeySize) + " of Z85");
  }
  return MeshKeys{public_key.data(), secret_key};
}

}  // namespace sangam
