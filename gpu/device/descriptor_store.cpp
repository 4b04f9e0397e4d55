// Sockets never wait here: a client that does not read keeps its own answer waiting, and nobody else's.
#include "gpu/device/descriptor_store.hpp"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <system_error>

#include "gpu/device/unix_address.hpp"

namespace sangam {
namespace {

constexpr int kBacklog = 16;
constexpr int kMessagesPerTurn = 16;  ///< Of one client, before the next has its turn.
/// Beside what is kept: one message that is being taken, and what else the process has open.
constexpr std::size_t kOtherFiles = kDescriptorsPerMessage + 64;

Error from_system(const DescriptorStoreOptions& options, const char* call) {
  return make_error(ErrorCode::unavailable, "descriptor store at " + options.path + ": " + call + ": " +
                                                std::generic_category().message(errno) +
                                                "; name a path that this user may write");
}

Result<void> check_limits(const DescriptorStoreOptions& options) {
  rlimit files{};
  const std::size_t needed = options.descriptors_max + options.clients_max + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur >= needed) return {};
  return make_error(ErrorCode::exhausted,
                    "descriptor store at " + options.path + ": may need " + std::to_string(needed) +
                        " open files, " + std::to_string(files.rlim_cur) +
                        " are allowed; raise the limit (ulimit -n) or lower descriptors_max");
}

/// Leaves the socket file of a store that died; one that lives answers.
Result<void> clear_path(const DescriptorStoreOptions& options, const UnixAddress& address) {
  const FileDescriptor probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(probe.number(), address.get(), address.size()) == 0) {
    return make_error(ErrorCode::unavailable, "descriptor store at " + options.path +
                                                  ": another one serves there; end it or name another path");
  }
  struct stat found {};
  if (errno == ECONNREFUSED && lstat(options.path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode))
    unlink(options.path.c_str());
  return {};
}

/// Whether the process at the other end runs as this user.
bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

}  // namespace

Result<std::unique_ptr<DescriptorStore>> DescriptorStore::open(DescriptorStoreOptions options) {
  if (auto enough = check_limits(options); !enough) return enough.error();
  auto store = std::unique_ptr<DescriptorStore>(new DescriptorStore(std::move(options)));
  if (auto listening = store->listen(); !listening) return listening.error();
  return store;
}

Result<void> DescriptorStore::listen() {
  const auto address = UnixAddress::of(options_.path);
  if (!address) return address.error();
  if (auto cleared = clear_path(options_, *address); !cleared) return cleared;
  events_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  listening_ = FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!events_ || !listening_) return from_system(options_, "socket");
  if (bind(listening_.number(), address->get(), address->size()) != 0) return from_system(options_, "bind");
  bound_ = true;
  // Nobody can connect before `listen`, so nobody of another user ever can.
  if (chmod(options_.path.c_str(), S_IRUSR | S_IWUSR) != 0) return from_system(options_, "chmod");
  if (::listen(listening_.number(), kBacklog) != 0) return from_system(options_, "listen");
  epoll_event event{.events = EPOLLIN, .data = {.fd = listening_.number()}};
  if (epoll_ctl(events_.number(), EPOLL_CTL_ADD, listening_.number(), &event) != 0)
    return from_system(options_, "epoll_ctl");
  return {};
}

DescriptorStore::~DescriptorStore() {
  if (bound_) unlink(options_.path.c_str());
}

std::size_t DescriptorStore::descriptors() const {
  std::set<std::shared_ptr<const PageList>>
      lists;  // One that was dropped lives on while a client is given it.
  std::size_t count = 0;
  for (const auto& [name, pages] : kept_) lists.insert(pages);
  for (const auto& [number, client] : clients_) {
    if (client.answer && client.answer->pages) lists.insert(client.answer->pages);
    count += client.arriving ? client.announced : 0;
  }
  for (const auto& pages : lists) count += pages->size();
  return count;
}

DescriptorStore::Answer DescriptorStore::refusal(const Error& why, Then then) {
  return {.verb = HandOverVerb::refused, .text = why.context, .code = why.code, .then = then};
}

void DescriptorStore::serve_ready() {
  std::array<epoll_event, 32> ready;
  const int count = epoll_wait(events_.number(), ready.data(), int(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int number = ready[std::size_t(i)].data.fd;
    if (number == listening_.number()) {
      accept_ready();
      continue;
    }
    Client& client = clients_.at(number);
    Next next = Next::again;
    for (int message = 0; message < kMessagesPerTurn && next == Next::again; ++message) next = serve(client);
    if (next == Next::gone) let_go(number);
  }
}

/// Closing alone would leave a socket in the events as long as a process that was forked here has it too.
void DescriptorStore::let_go(int number) {
  (void)epoll_ctl(events_.number(), EPOLL_CTL_DEL, number, nullptr);
  clients_.erase(number);
}

void DescriptorStore::accept_ready() {
  FileDescriptor socket(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const int number = socket.number();
  Client client{.socket = std::move(socket)};
  if (!is_own_user(number)) {
    client.answer =
        refusal(make_error(ErrorCode::unauthorized, "the store serves its own user only"), Then::hang_up);
  } else if (clients_.size() >= options_.clients_max) {
    client.answer =
        refusal(make_error(ErrorCode::queue_full, "the store serves " + std::to_string(clients_.size()) +
                                                      " clients already; try later"),
                Then::hang_up);
  }
  if (client.answer) {
    (void)send(client);  // A new connection has room for it; either way the client is let go.
    return;
  }
  epoll_event event{.events = EPOLLIN, .data = {.fd = number}};
  if (epoll_ctl(events_.number(), EPOLL_CTL_ADD, number, &event) == 0)
    clients_.emplace(number, std::move(client));
}

DescriptorStore::Next DescriptorStore::serve(Client& client) {
  if (client.answer) return send(client);
  auto part = receive_part(client.socket.number(), Waiting::refused);
  if (part && !*part) return Next::later;
  if (part) {
    hear(client, std::move(**part));
  } else if (part.error().code == ErrorCode::unavailable) {
    return Next::gone;
  } else {
    client.answer = refusal(part.error(), Then::hang_up);
  }
  return client.answer ? send(client) : Next::again;
}

void DescriptorStore::hear(Client& client, ArrivedPart part) {
  if (part.verb == HandOverVerb::put) return hear_put(client, std::move(part));
  if (client.arriving || client.refused ||
      (part.verb != HandOverVerb::get && part.verb != HandOverVerb::drop)) {
    const char* remedy = "put a list to its end, then get, drop or put another";
    client.answer = refusal(make_error(ErrorCode::invalid_input, remedy), Then::hang_up);
    return;
  }
  if (part.verb == HandOverVerb::drop && kept_.erase(part.text) == 1)
    client.answer = {.verb = HandOverVerb::done};
  else
    client.answer = list_of(part.text);
}

DescriptorStore::Answer DescriptorStore::list_of(const std::string& name) const {
  const auto found = kept_.find(name);
  if (found != kept_.end()) return {.verb = HandOverVerb::pages, .pages = found->second};
  return refusal(make_error(ErrorCode::not_found, "nothing is kept under that name; " +
                                                      std::to_string(kept_.size()) + " names are"),
                 Then::go_on);
}

void DescriptorStore::hear_put(Client& client, ArrivedPart part) {
  const bool is_last = part.is_last();
  if (!client.arriving && !client.refused) {
    client.refused = why_not(part.text, part.total);
    if (!client.refused) client.arriving.emplace(std::uint32_t(options_.descriptors_max));
    client.announced = part.total;
  }
  if (client.arriving) {
    const auto complete = client.arriving->add(std::move(part));
    if (complete && *complete) return keep(client);
    if (complete) return;
    client.arriving.reset();
    client.answer = refusal(complete.error(), Then::hang_up);
  } else if (is_last) {
    client.answer = refusal(*client.refused, Then::go_on);
    client.refused.reset();
  }
}

/// Until the new list is whole the old one of that name stays, so both count.
std::optional<Error> DescriptorStore::why_not(const std::string& name, std::size_t more) const {
  if (name.empty()) return make_error(ErrorCode::invalid_input, "a list needs a name");
  if (!kept_.contains(name) && kept_.size() >= options_.names_max) {
    return make_error(ErrorCode::exhausted, "the store keeps " + std::to_string(kept_.size()) +
                                                " names, at most " + std::to_string(options_.names_max) +
                                                "; drop one");
  }
  const std::size_t held = descriptors();
  if (held + more <= options_.descriptors_max) return std::nullopt;
  return make_error(ErrorCode::exhausted,
                    "the store holds " + std::to_string(held) + " descriptors, at most " +
                        std::to_string(options_.descriptors_max) + ", so " + std::to_string(more) +
                        " more are too many; drop a list, or use larger pages");
}

/// Another client may have taken the last free name meanwhile.
void DescriptorStore::keep(Client& client) {
  ArrivingPages whole = std::move(*client.arriving);
  client.arriving.reset();
  if (const auto refused = why_not(whole.name(), client.announced)) {
    client.answer = refusal(*refused, Then::go_on);
    return;
  }
  kept_[whole.name()] = std::make_shared<const PageList>(whole.take());
  client.answer = {.verb = HandOverVerb::done};
}

DescriptorStore::Next DescriptorStore::send(Client& client) const {
  Answer& answer = *client.answer;
  const std::span<const SharedPages> pages =
      answer.pages ? std::span<const SharedPages>(*answer.pages) : std::span<const SharedPages>();
  do {
    const HandOverPart part{
        .verb = answer.verb,
        .text = std::string_view(answer.text).substr(0, kHandOverTextMax),
        .total = std::uint32_t(pages.size()),
        .first = answer.sent,
        .code = answer.code,
        .pages = pages.subspan(answer.sent, std::min(kDescriptorsPerMessage, pages.size() - answer.sent))};
    const auto sent = send_part(client.socket.number(), part, Waiting::refused);
    if (!sent) return Next::gone;
    if (!*sent) {
      watch(client, EPOLLOUT);
      return Next::later;
    }
    answer.sent += std::uint32_t(part.pages.size());
  } while (answer.sent < pages.size());
  const Then then = answer.then;
  client.answer.reset();
  watch(client, EPOLLIN);
  return then == Then::hang_up ? Next::gone : Next::again;
}

void DescriptorStore::watch(const Client& client, std::uint32_t events) const {
  epoll_event event{.events = events, .data = {.fd = client.socket.number()}};
  (void)epoll_ctl(events_.number(), EPOLL_CTL_MOD, client.socket.number(), &event);
}

}  // namespace sangam
