// The front door: an HTTP server that speaks the OpenAI API to clients and is the actor `name` to the mesh.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/options.hpp"
#include "messages/mesh/post_office.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Owns one I/O thread, on which the core lives, and a small pool for large bodies. Thread-safe.
class Gateway {
 public:
  /// Listens, then attaches itself to `post`, which must outlive it. Fails when the address is malformed or
  /// taken. A model whose texts cannot be read is logged and answers 503 with the reason; the others serve.
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> start(GatewayOptions options, PostOffice& post);

  virtual ~Gateway() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// The address that clients can use: "http://127.0.0.1:8000".
  [[nodiscard]] virtual std::string url() const = 0;
  /// Accepts nothing new, lets calls end for `grace`, then cancels the rest, detaches and returns.
  /// Idempotent.
  virtual void stop(Millis grace) = 0;
};

}  // namespace sangam
