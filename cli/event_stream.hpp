// The data lines of a stream of server-sent events.
#pragma once

#include <string>
#include <string_view>

namespace sangam {

/// Cuts an event stream into the payloads of its data lines, whatever the pieces it arrives in.
class EventStream {
 public:
  template <class OnData>
  void feed(std::string_view piece, OnData on_data) {
    rest_ += piece;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      std::string_view line(rest_.data() + begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.starts_with("data: ")) on_data(line.substr(6));
    }
    rest_.erase(0, begin);
  }

 private:
  std::string rest_;
};

}  // namespace sangam
