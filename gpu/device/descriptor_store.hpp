// Keeps pages for workers that may die: lists of descriptors under names, taken and given over a unix socket.
// What a worker has put stays in memory when the worker is gone, and its successor gets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/device/hand_over.hpp"

namespace sangam {

struct DescriptorStoreOptions {
  std::string path{};  ///< Of the socket: made for this user alone, removed at the end.
  std::size_t names_max = 64;
  std::size_t descriptors_max = 1 << 16;  ///< Of all lists, those on their way included.
  std::size_t clients_max = 64;
};

/// For one thread. A list replaces the one of its name when its last page has arrived, not before; a client
/// that dies takes nothing with it. Clients of other users are refused.
class DescriptorStore {
 public:
  /// `exhausted` if this process may not open so many files; `unavailable` if another store serves the path.
  static Result<std::unique_ptr<DescriptorStore>> open(DescriptorStoreOptions options);
  ~DescriptorStore();
  DescriptorStore(const DescriptorStore&) = delete;
  DescriptorStore& operator=(const DescriptorStore&) = delete;

  /// Readable when `serve_ready` has something to do: for poll(2).
  [[nodiscard]] int file() const { return events_.number(); }
  /// Takes and answers what is there, a few messages of each client; never waits.
  void serve_ready();

  [[nodiscard]] std::size_t names() const { return kept_.size(); }
  /// Kept or on their way.
  [[nodiscard]] std::size_t descriptors() const;
  [[nodiscard]] std::size_t clients() const { return clients_.size(); }

 private:
  using PageList = std::vector<SharedPages>;

  enum class Next : std::uint8_t { later, again, gone };
  enum class Then : std::uint8_t { go_on, hang_up };

  /// What a client is owed; nothing more is read from it before it has it. A list may go meanwhile: it is
  /// shared.
  struct Answer {
    HandOverVerb verb{};
    std::string text{};
    ErrorCode code = ErrorCode::none;
    std::shared_ptr<const PageList> pages{};
    std::uint32_t sent = 0;
    Then then = Then::go_on;
  };
  struct Client {
    FileDescriptor socket;
    std::optional<ArrivingPages> arriving{};
    std::uint32_t announced = 0;     ///< Pages of the list that is arriving.
    std::optional<Error> refused{};  ///< Of the list that is arriving: the rest of it is let go.
    std::optional<Answer> answer{};
  };

  explicit DescriptorStore(DescriptorStoreOptions options) : options_(std::move(options)) {}
  static Answer refusal(const Error& why, Then then);
  Result<void> listen();
  void accept_ready();
  void let_go(int number);
  Next serve(Client& client);
  void hear(Client& client, ArrivedPart part);
  void hear_put(Client& client, ArrivedPart part);
  [[nodiscard]] std::optional<Error> why_not(const std::string& name, std::size_t more) const;
  void keep(Client& client);
  [[nodiscard]] Answer list_of(const std::string& name) const;
  Next send(Client& client) const;
  void watch(const Client& client, std::uint32_t events) const;

  DescriptorStoreOptions options_;
  FileDescriptor events_;
  FileDescriptor listening_;
  bool bound_ = false;
  std::map<int, Client> clients_;  ///< By the number of the socket.
  std::map<std::string, std::shared_ptr<const PageList>> kept_;
};

/// A worker's end. It connects when it has something to say, and again after an error; so it outlives its
/// store. Each verb waits for the store, for `kAnswerSeconds` at most.
class DescriptorStoreClient {
 public:
  static constexpr int kAnswerSeconds = 10;

  explicit DescriptorStoreClient(std::string path) : path_(std::move(path)) {}

  /// Replaces what lies there. `exhausted`: a bound of the store, with its numbers.
  Result<void> put(const std::string& name, std::span<const SharedPages> pages);
  /// Copies of what lies there, which stays. `not_found`: nothing does.
  Result<std::vector<SharedPages>> get(const std::string& name);
  /// `not_found`: nothing lies there.
  Result<void> drop(const std::string& name);

 private:
  Result<void> connect();
  Result<std::vector<SharedPages>> ask(const HandOverPart& question, HandOverVerb answer);

  std::string path_;
  FileDescriptor socket_;
};

}  // namespace sangam
