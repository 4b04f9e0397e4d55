// The face that every core shows to its shell, whatever its type.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// A core behind one interface. A core needs only the handlers it has use for: `start`, `wake`, and, if it
/// has work between letters, `busy` and `step`.
class Hosted {
 public:
  virtual ~Hosted() = default;
  virtual void start(Instant now, Outbox& out) = 0;
  /// False where the core has no handler for this message.
  [[nodiscard]] virtual bool on(const Message& message, Instant now, Outbox& out) = 0;
  virtual void wake(Timer timer, Instant now, Outbox& out) = 0;
  [[nodiscard]] virtual bool busy() const = 0;
  virtual void step(Instant now, Outbox& out) = 0;
};

template <class Core>
class HostedCore final : public Hosted {
 public:
  template <class... Arguments>
  explicit HostedCore(Arguments&&... arguments) : core_(std::forward<Arguments>(arguments)...) {}

  void start(Instant now, Outbox& out) override {
    if constexpr (requires { core_.start(now, out); }) core_.start(now, out);
  }
  bool on(const Message& message, Instant now, Outbox& out) override {
    return deliver(core_, message, now, out);
  }
  void wake(Timer timer, Instant now, Outbox& out) override {
    if constexpr (requires { core_.wake(timer, now, out); }) core_.wake(timer, now, out);
  }
  bool busy() const override {
    if constexpr (requires { core_.busy(); }) return core_.busy();
    return false;
  }
  void step(Instant now, Outbox& out) override {
    if constexpr (requires { core_.step(now, out); }) core_.step(now, out);
  }

 private:
  Core core_;
};

/// An actor to host: its name and how to make its core, anew after each crash.
struct Role {
  ActorName name;
  std::function<Result<std::unique_ptr<Hosted>>(Incarnation)> make;
  bool own_thread = false;  ///< For cores whose steps take long, so that they never hold up their neighbours.
};

}  // namespace sangam
