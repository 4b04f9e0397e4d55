// A message is a fixed head, the text, and (offset, bytes) of each page; the descriptors travel beside it
// (unix(7), SCM_RIGHTS). Both ends are on one machine, so numbers travel as they lie in memory.
#include "gpu/device/hand_over.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

struct Head {
  std::uint32_t magic = 0x53474832;  // "2HGS": the layout's version
  HandOverVerb verb{};
  std::uint32_t text_bytes = 0;
  std::uint32_t total = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t code = 0;
};

struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

constexpr std::size_t kMessageMax = sizeof(Head) + kHandOverTextMax + kDescriptorsPerMessage * sizeof(Place);
using ControlBuffer = std::array<std::byte, CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))>;

Error from_system(const char* call, int code) {
  const bool full = code == EMFILE || code == ETOOMANYREFS || code == ENOBUFS || code == ENOMEM;
  return make_error(
      full ? ErrorCode::exhausted : ErrorCode::unavailable,
      std::string("handing over pages: ") + call + ": " + std::generic_category().message(code) +
          (full ? "; raise the limit of open files (ulimit -n), or use larger pages" : "; connect again"));
}

Error corrupt(const std::string& what) {
  return make_error(ErrorCode::corrupt,
                    "handing over pages: " + what + "; both sides must be of one version");
}

/// All descriptors that came with a message, owned at once, so that none is lost on the way to an error.
std::vector<FileDescriptor> descriptors_of(const msghdr& message) {
  std::vector<FileDescriptor> files;
  auto* next = const_cast<msghdr*>(&message);
  for (cmsghdr* one = CMSG_FIRSTHDR(next); one != nullptr; one = CMSG_NXTHDR(next, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> numbers((one->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(one), numbers.size() * sizeof(int));
    for (const int number : numbers) files.emplace_back(number);
  }
  return files;
}

Result<ArrivedPart> parsed(std::span<const std::byte> bytes, std::vector<FileDescriptor> files) {
  Head head;
  if (bytes.size() < sizeof head) return corrupt("a message of " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != Head{}.magic || head.verb > HandOverVerb::refused ||
      head.code > std::uint32_t(ErrorCode::internal))
    return corrupt("an unknown kind of message");
  if (head.text_bytes > kHandOverTextMax || head.count > kDescriptorsPerMessage ||
      bytes.size() != sizeof head + head.text_bytes + head.count * sizeof(Place)) {
    return corrupt("a text of " + std::to_string(head.text_bytes) + " bytes and " +
                   std::to_string(head.count) + " pages in a message of " + std::to_string(bytes.size()) +
                   " bytes");
  }
  if (files.size() != head.count) {
    return corrupt(std::to_string(head.count) + " pages with " + std::to_string(files.size()) +
                   " descriptors");
  }
  if (head.first > head.total || head.count > head.total - head.first) {
    return corrupt("pages " + std::to_string(head.first) + " to " + std::to_string(head.first + head.count) +
                   " of " + std::to_string(head.total));
  }
  ArrivedPart part{head.verb, {}, head.total, head.first, ErrorCode(head.code), {}};
  bytes = bytes.subspan(sizeof head);
  part.text.assign(reinterpret_cast<const char*>(bytes.data()), head.text_bytes);
  bytes = bytes.subspan(head.text_bytes);
  for (std::size_t i = 0; i < head.count; ++i) {
    Place place;
    std::memcpy(&place, bytes.data() + i * sizeof place, sizeof place);
    part.pages.push_back({std::move(files[i]), place.offset, std::size_t(place.bytes)});
  }
  return part;
}

}  // namespace

Result<bool> send_part(int socket, const HandOverPart& part, Waiting waiting) {
  SANGAM_ASSERT(part.text.size() <= kHandOverTextMax && part.pages.size() <= kDescriptorsPerMessage,
                part.text.size(), part.pages.size());
  Head head{.verb = part.verb,
            .text_bytes = std::uint32_t(part.text.size()),
            .total = part.total,
            .first = part.first,
            .count = std::uint32_t(part.pages.size()),
            .code = std::uint32_t(part.code)};
  std::vector<Place> places;
  std::vector<int> numbers;
  for (const SharedPages& one : part.pages) {
    places.push_back({one.offset, one.bytes});
    numbers.push_back(one.file.number());
  }
  std::array<iovec, 3> pieces{iovec{&head, sizeof head},
                              iovec{const_cast<char*>(part.text.data()), part.text.size()},
                              iovec{places.data(), places.size() * sizeof(Place)}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  alignas(cmsghdr) ControlBuffer control{};
  if (!numbers.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(numbers.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(numbers.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), numbers.data(), numbers.size() * sizeof(int));
  }
  const int flags = MSG_NOSIGNAL | (waiting == Waiting::refused ? MSG_DONTWAIT : 0);
  while (sendmsg(socket, &message, flags) < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return from_system("sendmsg", errno);
  }
  return true;
}

Result<std::optional<ArrivedPart>> receive_part(int socket, Waiting waiting) {
  std::array<std::byte, kMessageMax> bytes;
  alignas(cmsghdr) ControlBuffer control{};
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const int flags = MSG_CMSG_CLOEXEC | (waiting == Waiting::refused ? MSG_DONTWAIT : 0);
  ssize_t size = -1;
  // That the other side closed without reading all is told once, ahead of what had arrived before.
  bool reset = false;
  while ((size = recvmsg(socket, &message, flags)) < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<ArrivedPart>();
    if (errno != EINTR && (errno != ECONNRESET || std::exchange(reset, true)))
      return from_system("recvmsg", errno);
  }
  std::vector<FileDescriptor> files = descriptors_of(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) return from_system("recvmsg", EMFILE);
  if ((message.msg_flags & MSG_TRUNC) != 0) return corrupt("a message that is too long");
  if (size == 0) return make_error(ErrorCode::unavailable, "handing over pages: the other side has closed");
  auto part = parsed(std::span(bytes).first(std::size_t(size)), std::move(files));
  if (!part) return part.error();
  return std::optional<ArrivedPart>(std::move(*part));
}

Result<bool> ArrivingPages::add(ArrivedPart part) {
  if (part.total > pages_max_) {
    return make_error(ErrorCode::exhausted, "a list of " + std::to_string(part.total) + " pages; at most " +
                                                std::to_string(pages_max_) + " are taken: use larger pages");
  }
  const bool begins = pages_.empty();
  if (part.first != pages_.size() || (!begins && (part.text != name_ || part.total != total_)) ||
      (part.pages.empty() && part.total != 0)) {
    return corrupt("page " + std::to_string(part.first) + " of " + std::to_string(part.total) + " of '" +
                   part.text + "' does not follow page " + std::to_string(pages_.size()) + " of '" + name_ +
                   "'");
  }
  name_ = std::move(part.text);
  total_ = part.total;
  std::move(part.pages.begin(), part.pages.end(), std::back_inserter(pages_));
  return pages_.size() == total_;
}

Result<void> send_pages(int socket, HandOverVerb verb, std::string_view name,
                        std::span<const SharedPages> pages) {
  if (name.size() > kHandOverTextMax) {
    return make_error(ErrorCode::invalid_input, "a name of " + std::to_string(name.size()) +
                                                    " bytes; at most " + std::to_string(kHandOverTextMax) +
                                                    " are allowed");
  }
  HandOverPart part{.verb = verb, .text = name, .total = std::uint32_t(pages.size())};
  do {
    part.pages = pages.subspan(part.first, std::min(kDescriptorsPerMessage, pages.size() - part.first));
    const auto sent = send_part(socket, part, Waiting::allowed);
    if (!sent) return sent.error();
    if (!*sent) return make_error(ErrorCode::unavailable, "handing over pages: nobody reads; try again");
    part.first += std::uint32_t(part.pages.size());
  } while (part.first < pages.size());
  return {};
}

Result<std::vector<SharedPages>> receive_pages(int socket, HandOverVerb verb, std::uint32_t pages_max) {
  ArrivingPages arriving(pages_max);
  while (true) {
    auto part = receive_part(socket, Waiting::allowed);
    if (!part) return part.error();
    if (!*part) return make_error(ErrorCode::unavailable, "handing over pages: no answer in time; try again");
    if ((*part)->verb == HandOverVerb::refused) return make_error((*part)->code, (*part)->text);
    if ((*part)->verb != verb) return corrupt("an answer to another question");
    auto complete = arriving.add(std::move(**part));
    if (!complete) return complete.error();
    if (*complete) return arriving.take();
  }
}

}  // namespace sangam
