// Pages across a unix socket: a list of descriptors under a name, in as many messages as it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device/device.hpp"

namespace sangam {

/// Linux passes no more descriptors with one message (SCM_MAX_FD).
inline constexpr std::size_t kDescriptorsPerMessage = 253;
inline constexpr std::size_t kHandOverTextMax = 1024;

/// `put`, `get` and `drop` go from client to store; `pages` is a list that was got; `done` and `refused` end
/// each.
enum class HandOverVerb : std::uint32_t { put, get, drop, pages, done, refused };

/// Some pages of a list: those from number `first` on, of `total`.
struct HandOverPart {
  HandOverVerb verb{};
  std::string_view text{};  ///< The list's name, or why something was refused. Up to kHandOverTextMax.
  std::uint32_t total = 0;
  std::uint32_t first = 0;
  ErrorCode code = ErrorCode::none;      ///< Of what was refused.
  std::span<const SharedPages> pages{};  ///< Up to kDescriptorsPerMessage.
};

/// A part as it arrived: it owns what the sender only showed.
struct ArrivedPart {
  HandOverVerb verb{};
  std::string text{};
  std::uint32_t total = 0;
  std::uint32_t first = 0;
  ErrorCode code = ErrorCode::none;
  std::vector<SharedPages> pages{};

  [[nodiscard]] bool is_last() const { return first + pages.size() >= total; }
};

enum class Waiting : std::uint8_t { allowed, refused };

/// Over a connected socket of type SOCK_SEQPACKET. False: nothing was sent, since that would mean waiting.
/// `unavailable`: the other side is gone. `exhausted`: too many descriptors are under way.
Result<bool> send_part(int socket, const HandOverPart& part, Waiting waiting);

/// None: nothing has arrived yet. `unavailable`: the other side is gone. `corrupt`: no such message; its
/// descriptors are closed. `exhausted`: this process may open no more files.
Result<std::optional<ArrivedPart>> receive_part(int socket, Waiting waiting);

/// A list that comes in parts, in order and without gaps.
class ArrivingPages {
 public:
  explicit ArrivingPages(std::uint32_t pages_max) : pages_max_(pages_max) {}

  /// True with the last part. `corrupt` if it does not continue the list; `exhausted` if the list is longer
  /// than allowed.
  Result<bool> add(ArrivedPart part);
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::vector<SharedPages> take() { return std::move(pages_); }

 private:
  std::uint32_t pages_max_;
  std::string name_;
  std::uint32_t total_ = 0;
  std::vector<SharedPages> pages_;
};

/// The whole list; waits as long as the other side does. An empty one is a part without pages.
Result<void> send_pages(int socket, HandOverVerb verb, std::string_view name,
                        std::span<const SharedPages> pages);
/// The whole list that the other side sends as `verb`. What it refuses comes as an error with its words.
Result<std::vector<SharedPages>> receive_pages(int socket, HandOverVerb verb, std::uint32_t pages_max);

}  // namespace sangam
