// Weights of one model on their way from workers on other hosts, a segment from whoever is free.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/memory/segment_load.hpp"
#include "gpu/residency/folder_reading.hpp"
#include "messages/vocabulary/blob.hpp"

namespace sangam {

/// A source that fails, or sends what does not hash to its name, is given up: its part goes to the others.
class WeightsPull {
 public:
  using Sources = std::vector<std::unique_ptr<BlobPull>>;
  /// At least one source; each is asked for the model's card at once.
  WeightsPull(const ModelId& model, Sources sources);

  /// What the model is, from the first source that says it. Nothing: not yet. The error of the last source when none
  /// is left.
  Result<std::optional<Blueprint>> blueprint(Millis wait);

  /// Moves about `most` bytes of what has arrived into what the load awaits; waits for the first of them. Sources that
  /// say the model is another one than `blueprint` said are given up. `unavailable` when no source is left: what is
  /// still awaited can be supplied from elsewhere. Another error is the load's.
  Result<void> advance(SegmentLoad& load, Bytes most, Millis wait);

 private:
  struct Wanted {
    std::size_t index = 0;
    BlobName name;
    Bytes bytes{0};
  };
  struct Source {
    std::unique_ptr<BlobPull> pull;
    std::string card;             ///< As far as it has arrived.
    bool is_proven = false;       ///< It has the card that was taken.
    std::deque<Wanted> asked{};   ///< Not complete, in the order of the asks.
    Bytes under_way{0};
  };

  void ask_for_more(Source& source);
  [[nodiscard]] Result<bool> take_card(Source& source, const BlobPart& part);
  /// True: something came.
  Result<bool> take_next(Source& source, SegmentLoad& load, Bytes& moved, Millis wait);
  void give_up(Source& source, const Error& why);
  void drop_given_up();

  std::string model_;
  std::vector<Source> sources_;
  std::string card_;          ///< The one that was taken.
  bool has_begun_ = false;
  std::deque<Wanted> left_;   ///< Asked of nobody,
  Bytes left_bytes_{0};       ///< so many bytes.
  std::optional<Error> last_error_;
};

}  // namespace sangam
