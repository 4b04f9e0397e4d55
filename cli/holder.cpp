// The store of descriptors and the thread that serves it.
#include "cli/holder.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

namespace sangam {
namespace {

/// Two a worker, a pool's and a manifest's; below what a process may open by default.
constexpr std::size_t kDescriptorsMax = 512;

}  // namespace

Result<std::unique_ptr<Holder>> Holder::start(const std::string& socket) {
  DescriptorStoreOptions options;
  options.path = socket;
  options.descriptors_max = kDescriptorsMax;
  auto store = DescriptorStore::open(std::move(options));
  if (!store) return store.error();
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return make_error(ErrorCode::exhausted, "holder: eventfd: " + std::generic_category().message(errno));
  return std::unique_ptr<Holder>(new Holder(std::move(*store), std::move(stop)));
}

Holder::Holder(std::unique_ptr<DescriptorStore> store, FileDescriptor stop)
    : store_(std::move(store)), stop_(std::move(stop)), thread_([this] { serve(); }) {}

Holder::~Holder() {
  (void)eventfd_write(stop_.number(), 1);
  thread_.join();
}

void Holder::serve() {
  pollfd waiting[] = {{store_->file(), POLLIN, 0}, {stop_.number(), POLLIN, 0}};
  while (poll(waiting, 2, -1) >= 0 || errno == EINTR) {
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents != 0) store_->serve_ready();
  }
}

}  // namespace sangam
