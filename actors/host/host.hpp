// Hosts the actors of one process: gives each core a mailbox, timers and a supervisor.
#pragma once

#include <memory>
#include <vector>

#include "actors/host/hosted.hpp"
#include "messages/mesh/post_office.hpp"

namespace sangam {

struct HostOptions {
  Incarnation incarnation{1};  ///< Of this process; an actor's own is derived from it and its restarts.
  std::size_t threads = 2;
  Millis restart_delay_first{100};  ///< After a crash; doubles with each further one,
  Millis restart_delay_max{10'000};  ///< up to this.
  Seconds healthy_after{60};         ///< A run this long starts the delays anew.
};

/// Supervision: a core that throws, or cannot be made, is announced as lost, and made anew after a delay.
class Host {
 public:
  /// `post` outlives the host.
  Host(HostOptions options, PostOffice& post);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void spawn(Role role);

 private:
  struct Stage;
  std::unique_ptr<Stage> stage_;
};

}  // namespace sangam
