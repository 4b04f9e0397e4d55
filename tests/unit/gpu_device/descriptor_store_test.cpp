// The store with real processes around it, which die when it hurts most. Nothing here waits for a time to
// pass.
#include "gpu/device/descriptor_store.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "gpu/device/unix_address.hpp"
#include "tests/unit/gpu_device/numbered_files.hpp"

using namespace sangam;

namespace {

struct Folder {
  Folder() {
    std::string name = "/tmp/sangam-store-XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() {
    unlink(socket().c_str());
    rmdir(path.c_str());
  }
  [[nodiscard]] std::string socket() const { return path + "/store"; }
  std::string path;
};

/// A store at a path of its own.
struct Served {
  explicit Served(DescriptorStoreOptions options = {}) {
    options.path = folder.socket();
    options.descriptors_max = std::min<std::size_t>(options.descriptors_max, 2000);
    store = DescriptorStore::open(options).value();
  }

  /// Serves until `end` can be read or is closed.
  void until(int end) {
    std::array<pollfd, 2> files{pollfd{store->file(), POLLIN, 0}, pollfd{end, POLLIN, 0}};
    while (true) {
      REQUIRE(poll(files.data(), files.size(), -1) > 0);
      if (files[0].revents != 0) store->serve_ready();
      if (files[1].revents != 0 && files[0].revents == 0) return;
    }
  }

  /// Serves while a client on another thread does this.
  void with(const std::function<void(DescriptorStoreClient&)>& work) {
    const FileDescriptor done(eventfd(0, EFD_CLOEXEC));
    std::jthread thread([&] {
      DescriptorStoreClient client(folder.socket());
      work(client);
      const std::uint64_t one = 1;
      REQUIRE(write(done.number(), &one, sizeof one) == sizeof one);
    });
    until(done.number());
  }

  /// Serves while another process does this and then ends; its exit code, or minus the signal that ended it.
  int with_process(const std::function<int()>& work) {
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    const FileDescriptor end(ends[0]);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(work());
    close(ends[1]);
    until(end.number());
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  Folder folder;
  std::unique_ptr<DescriptorStore> store;
};

FileDescriptor connected(const std::string& path) {
  FileDescriptor file(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = UnixAddress::of(path).value();
  if (::connect(file.number(), address.get(), address.size()) != 0) return {};
  return file;
}

ErrorCode code_of(const Result<void>& result) {
  return result ? ErrorCode::none : result.error().code;
}
ErrorCode code_of(const Result<std::vector<SharedPages>>& result) {
  return result ? ErrorCode::none : result.error().code;
}

/// Sends the first parts of a list of 600 pages and no more.
bool begin_a_list(int socket, const std::string& name, std::span<const SharedPages> pages) {
  for (const std::uint32_t first : {0U, 253U}) {
    const HandOverPart part{.verb = HandOverVerb::put,
                            .text = name,
                            .total = 600,
                            .first = first,
                            .pages = pages.subspan(first, 253)};
    if (!send_part(socket, part, Waiting::allowed)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a successor gets what a worker had put before it was killed") {
  Served served;
  CHECK(served.with_process([&] {
    const auto pages = numbered_files(7, 600);
    DescriptorStoreClient client(served.folder.socket());
    if (!client.put("worker/1", pages)) return 1;
    raise(SIGKILL);
    return 2;
  }) == -SIGKILL);
  CHECK(served.store->descriptors() == 600);
  CHECK(served.with_process([&] {
    DescriptorStoreClient client(served.folder.socket());
    const auto pages = client.get("worker/1");
    return pages && are_numbered(*pages, 7, 600) ? 0 : 1;
  }) == 0);
  CHECK(served.store->clients() == 0);
  CHECK(served.store->descriptors() == 600);
}

TEST_CASE("a worker that is killed in the middle of a list leaves the one that was there") {
  Served served;
  served.with([](DescriptorStoreClient& client) { CHECK(client.put("pool", numbered_files(1, 300))); });
  CHECK(served.with_process([&] {
    const auto pages = numbered_files(5000, 600);
    const FileDescriptor socket = connected(served.folder.socket());
    if (!begin_a_list(socket.number(), "pool", pages)) return 1;
    raise(SIGKILL);
    return 2;
  }) == -SIGKILL);
  CHECK(served.store->clients() == 0);
  CHECK(served.store->descriptors() == 300);
  served.with([](DescriptorStoreClient& client) { CHECK(are_numbered(client.get("pool").value(), 1, 300)); });
}

TEST_CASE("a list replaces the one of its name, is got as often as asked for, and is gone when dropped") {
  Served served;
  served.with([](DescriptorStoreClient& client) {
    CHECK(code_of(client.get("pool")) == ErrorCode::not_found);
    CHECK(client.put("pool", numbered_files(1, 300)));
    CHECK(client.put("pool", numbered_files(900, 2)));
    CHECK(client.put("empty", {}));
    CHECK(are_numbered(client.get("pool").value(), 900, 2));
    CHECK(are_numbered(client.get("pool").value(), 900, 2));
    CHECK(client.get("empty").value().empty());
    CHECK(client.drop("pool"));
    CHECK(code_of(client.get("pool")) == ErrorCode::not_found);
    CHECK(code_of(client.drop("pool")) == ErrorCode::not_found);
  });
  CHECK(served.store->names() == 1);
  CHECK(served.store->descriptors() == 0);
}

TEST_CASE(
    "more names or descriptors than the store keeps are refused with its numbers, and all that was stays") {
  Served served({.names_max = 2, .descriptors_max = 700});
  served.with([](DescriptorStoreClient& client) {
    CHECK(client.put("a", numbered_files(1, 200)));
    CHECK(client.put("b", numbered_files(1000, 100)));
    CHECK(code_of(client.put("c", numbered_files(0, 1))) == ErrorCode::exhausted);
    CHECK(code_of(client.put("", numbered_files(0, 1))) == ErrorCode::invalid_input);
    const auto refused = client.put("b", numbered_files(2000, 401));
    CHECK(code_of(refused) == ErrorCode::exhausted);
    CHECK(refused.error().context.find("holds 300 descriptors, at most 700, so 401 more") !=
          std::string::npos);
    CHECK(client.put("b", numbered_files(2000, 400)));
    CHECK(are_numbered(client.get("a").value(), 1, 200));
    CHECK(are_numbered(client.get("b").value(), 2000, 400));
  });
}

TEST_CASE("more clients than the store serves are refused, and served when others have gone") {
  Served served({.clients_max = 2});
  {
    const FileDescriptor first = connected(served.folder.socket());
    const FileDescriptor second = connected(served.folder.socket());
    served.with(
        [](DescriptorStoreClient& client) { CHECK(code_of(client.put("a", {})) == ErrorCode::queue_full); });
    CHECK(served.store->clients() == 2);
  }
  served.with([](DescriptorStoreClient& client) { CHECK(client.put("a", {})); });
}

TEST_CASE("a client that does not read its answer holds up nobody else") {
  Served served;
  served.with([](DescriptorStoreClient& client) { CHECK(client.put("pool", numbered_files(0, 1000))); });
  const FileDescriptor slow = connected(served.folder.socket());
  // Asked for so often that no socket's buffer could take all answers.
  for (int i = 0; i < 40; ++i)
    REQUIRE(send_part(slow.number(), {.verb = HandOverVerb::get, .text = "pool"}, Waiting::allowed));
  served.with(
      [](DescriptorStoreClient& client) { CHECK(are_numbered(client.get("pool").value(), 0, 1000)); });
  served.with([](DescriptorStoreClient& client) { CHECK(client.drop("pool")); });
  CHECK(served.store->descriptors() == 1000);  // Still owed to the slow one.
  served.with([&](DescriptorStoreClient&) {
    for (int i = 0; i < 2; ++i)
      CHECK(are_numbered(receive_pages(slow.number(), HandOverVerb::pages, 1000).value(), 0, 1000));
  });
}

TEST_CASE("a process that was forked from the store's keeps no client alive in it") {
  Served served;
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const FileDescriptor end(ends[0]);
  FileDescriptor begin(ends[1]);
  FileDescriptor client = connected(served.folder.socket());
  served.with([](DescriptorStoreClient& other) { CHECK(other.put("a", {})); });
  const pid_t child = fork();  // Has the store's end of `client`, too, until the pipe is closed.
  REQUIRE(child >= 0);
  if (child == 0) {
    begin = FileDescriptor();
    char byte = 0;
    _exit(int(read(end.number(), &byte, 1)));
  }
  const FileDescriptor inherited = std::move(client);
  REQUIRE(shutdown(inherited.number(), SHUT_RDWR) == 0);
  served.with([](DescriptorStoreClient& other) { CHECK(other.put("b", {})); });
  while (served.store->clients() > 0) served.store->serve_ready();
  pollfd events{served.store->file(), POLLIN, 0};
  CHECK(poll(&events, 1, 0) == 0);
  begin = FileDescriptor();
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("what is no message is answered with a reason, ends that client, and nothing else") {
  Served served;
  served.with([](DescriptorStoreClient& client) { CHECK(client.put("pool", numbered_files(3, 5))); });
  served.with([&](DescriptorStoreClient& client) {
    const FileDescriptor rude = connected(served.folder.socket());
    CHECK(send(rude.number(), "hello", 5, 0) == 5);
    const auto refused = receive_pages(rude.number(), HandOverVerb::done, 1);
    CHECK(code_of(refused) == ErrorCode::corrupt);
    CHECK(refused.error().context.find("a message of 5 bytes") != std::string::npos);
    CHECK(code_of(receive_pages(rude.number(), HandOverVerb::done, 1)) == ErrorCode::unavailable);

    const FileDescriptor hasty = connected(served.folder.socket());
    const auto pages = numbered_files(0, 600);
    CHECK(begin_a_list(hasty.number(), "pool", pages));
    CHECK(send_part(hasty.number(), {.verb = HandOverVerb::get, .text = "pool"}, Waiting::allowed));
    CHECK(code_of(receive_pages(hasty.number(), HandOverVerb::pages, 600)) == ErrorCode::invalid_input);
    CHECK(are_numbered(client.get("pool").value(), 3, 5));
  });
}

TEST_CASE("a process of another user is refused, even where it may open the socket") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  Served served;
  REQUIRE(chmod(served.folder.path.c_str(), 0777) == 0);
  const auto as_stranger = [&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 100;
    return int(code_of(DescriptorStoreClient(served.folder.socket()).get("pool")));
  };
  CHECK(served.with_process(as_stranger) ==
        int(ErrorCode::unavailable));  // The socket is made for its user alone.
  REQUIRE(chmod(served.folder.socket().c_str(), 0777) == 0);
  CHECK(served.with_process(as_stranger) == int(ErrorCode::unauthorized));
}

TEST_CASE("a client finds the next store at the path of one that died, and two never serve one path") {
  Folder folder;
  const DescriptorStoreOptions options{.path = folder.socket(), .descriptors_max = 100};
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto store = DescriptorStore::open(options);
    raise(SIGKILL);  // The socket's file stays.
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(access(folder.socket().c_str(), F_OK) == 0);
  DescriptorStoreClient client(folder.socket());
  CHECK(code_of(client.get("pool")) == ErrorCode::unavailable);

  auto store = DescriptorStore::open(options);
  REQUIRE(store);
  const auto second = DescriptorStore::open(options);
  REQUIRE(!second);
  CHECK(second.error().code == ErrorCode::unavailable);
  store->reset();
  CHECK(access(folder.socket().c_str(), F_OK) != 0);
}

TEST_CASE("a store that could run out of open files is not opened") {
  Folder folder;
  rlimit files{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  const auto store = DescriptorStore::open({.path = folder.socket(), .descriptors_max = files.rlim_cur});
  REQUIRE(!store);
  CHECK(store.error().code == ErrorCode::exhausted);
  CHECK_FALSE(DescriptorStore::open({.path = std::string(200, 'x'), .descriptors_max = 1}));
}
