// The address of a unix socket, from its path.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "messages/vocabulary/result.hpp"

namespace sangam {

class UnixAddress {
 public:
  static Result<UnixAddress> of(const std::string& path) {
    UnixAddress address;
    if (path.empty() || path.size() >= sizeof address.name_.sun_path) {
      return make_error(ErrorCode::invalid_input, "a unix socket's path of " + std::to_string(path.size()) +
                                                      " bytes ('" + path + "'); it must have between 1 and " +
                                                      std::to_string(sizeof address.name_.sun_path - 1));
    }
    std::memcpy(address.name_.sun_path, path.data(), path.size());
    return address;
  }

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  [[nodiscard]] socklen_t size() const { return sizeof name_; }

 private:
  UnixAddress() { name_.sun_family = AF_UNIX; }
  sockaddr_un name_{};
};

}  // namespace sangam
