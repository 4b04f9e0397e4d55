// The client waits: its worker has nothing else to do before it has its pages.
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "gpu/device/descriptor_store.hpp"
#include "gpu/device/unix_address.hpp"

namespace sangam {

Result<void> DescriptorStoreClient::connect() {
  if (socket_) return {};
  const auto address = UnixAddress::of(path_);
  if (!address) return address.error();
  FileDescriptor file(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = kAnswerSeconds, .tv_usec = 0};
  if (!file || setsockopt(file.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
      setsockopt(file.number(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
      ::connect(file.number(), address->get(), address->size()) != 0) {
    return make_error(ErrorCode::unavailable, "descriptor store at " + path_ + ": " +
                                                  std::generic_category().message(errno) +
                                                  "; start the holder, as the same user");
  }
  socket_ = std::move(file);
  return {};
}

Result<std::vector<SharedPages>> DescriptorStoreClient::ask(const HandOverPart& question,
                                                            HandOverVerb answer) {
  if (auto connected = connect(); !connected) return connected.error();
  const auto sent = send_pages(socket_.number(), question.verb, question.text, question.pages);
  auto received =
      sent || sent.error().code == ErrorCode::unavailable  // A store that hangs up says why before.
          ? receive_pages(socket_.number(), answer, std::numeric_limits<std::uint32_t>::max())
          : Result<std::vector<SharedPages>>(sent.error());
  if (received) return received;
  socket_ = FileDescriptor();  // An answer to this question, come late, must not be taken for the next one's.
  return make_error(received.error().code, "descriptor store at " + path_ + ", '" +
                                               std::string(question.text) + "': " + received.error().context);
}

Result<void> DescriptorStoreClient::put(const std::string& name, std::span<const SharedPages> pages) {
  const auto done = ask({.verb = HandOverVerb::put, .text = name, .pages = pages}, HandOverVerb::done);
  if (!done) return done.error();
  return {};
}

Result<std::vector<SharedPages>> DescriptorStoreClient::get(const std::string& name) {
  return ask({.verb = HandOverVerb::get, .text = name}, HandOverVerb::pages);
}

Result<void> DescriptorStoreClient::drop(const std::string& name) {
  const auto done = ask({.verb = HandOverVerb::drop, .text = name}, HandOverVerb::done);
  if (!done) return done.error();
  return {};
}

}  // namespace sangam
