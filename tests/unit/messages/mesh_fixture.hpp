// What the tests of the mesh share: an inbox that can be waited on, short letters, logs that go nowhere.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "messages/mesh/mesh.hpp"

namespace sangam::testing {

/// Generous: only a broken mesh uses it up.
constexpr std::chrono::seconds kDeadline{20};

inline LogSink ignore_logs() {
  return [](const LogLine&) {};
}

inline Envelope letter_to(const std::string& to, std::uint64_t request) {
  Envelope letter;
  letter.from = ActorName("tester");
  letter.to = ActorName(to);
  letter.message = Cancel{RequestId{request}};
  return letter;
}

inline std::uint64_t request_of(const Envelope& letter) {
  return std::uint64_t(std::get<Cancel>(letter.message).request);
}

/// So that only what a test does can cause a loss, however busy the machine is.
inline MeshOptions patient(MeshOptions options) {
  options.heartbeat_timeout = std::chrono::milliseconds(kDeadline) * 2;
  return options;
}

/// For counters, which nobody announces.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Keeps what arrives: letters, and presence as "+name/incarnation" and "-name/incarnation why". Must outlive
/// the mesh that it is attached to.
class Inbox {
 public:
  Mailbox mailbox() {
    return [this](EnvelopePtr letter) { put(std::move(letter)); };
  }
  std::vector<EnvelopePtr> letters() const {
    std::lock_guard lock(mutex_);
    return letters_;
  }
  std::vector<std::string> presence() const {
    std::lock_guard lock(mutex_);
    return presence_;
  }
  [[nodiscard]] std::vector<EnvelopePtr> take_letters() {
    std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
  }
  /// True when `condition(inbox)` came true before the deadline; asked whenever something arrives.
  template <class Condition>
  [[nodiscard]] bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return condition(letters_, presence_); });
  }
  [[nodiscard]] bool wait_letters(std::size_t count) {
    return wait([=](auto& letters, auto&) { return letters.size() >= count; });
  }
  [[nodiscard]] bool wait_presence(std::size_t count) {
    return wait([=](auto&, auto& presence) { return presence.size() >= count; });
  }

 private:
  void put(EnvelopePtr letter) {
    std::lock_guard lock(mutex_);
    auto text = [](const auto& m) {
      return m.actor.text() + "/" + std::to_string(std::uint64_t(m.incarnation));
    };
    if (const auto* found = std::get_if<ActorFound>(&letter->message)) {
      presence_.push_back("+" + text(*found));
    } else if (const auto* lost = std::get_if<ActorLost>(&letter->message)) {
      presence_.push_back("-" + text(*lost) + " " + lost->why);
    } else {
      letters_.push_back(std::move(letter));
    }
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<EnvelopePtr> letters_;
  std::vector<std::string> presence_;
};

/// Keeps a mesh's log, event by event.
class Log {
 public:
  LogSink sink() {
    return [this](const LogLine& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line.event);
      for (const auto& [name, value] : line.fields) lines_.back() += " " + name + "=" + value;
      changed_.notify_all();
    };
  }
  /// Waits for a line that begins like this.
  [[nodiscard]] bool wait(const std::string& beginning) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] {
      return std::any_of(lines_.begin(), lines_.end(),
                         [&](auto& line) { return line.starts_with(beginning); });
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

/// Nodes that know each other by name, at paths of a directory of their own or at free ports of this host.
class Registry {
 public:
  explicit Registry(bool over_tcp = false);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Registry& add(const std::string& node);
  /// Short heartbeats, so that tests of loss are short; the ratio is that of the defaults.
  [[nodiscard]] MeshOptions options(const std::string& node, std::uint64_t incarnation = 1) const;
  [[nodiscard]] std::unique_ptr<Mesh> open(const std::string& node, std::uint64_t incarnation = 1) const;
  void set_key(const std::string& node, const std::string& public_key);
  [[nodiscard]] const std::string& endpoint(const std::string& node) const;

 private:
  bool over_tcp_;
  std::string directory_;
  std::vector<Peer> peers_;
};

}  // namespace sangam::testing
