// Cutting blobs into parts.
#include "messages/mesh/bulk_session.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam::mesh {

Result<void> BulkSession::ask(wire::BulkAsk ask) {
  if (ask.number != asked_ + 1) {
    return make_error(ErrorCode::corrupt, "ask " + std::to_string(ask.number) + " does not follow ask " +
                                              std::to_string(asked_));
  }
  if (asks_.size() >= kBlobAsksMax) {
    return make_error(ErrorCode::exhausted, std::to_string(asks_.size()) + " asks wait; the limit is " +
                                                std::to_string(kBlobAsksMax));
  }
  asked_ = ask.number;
  asks_.push_back(std::move(ask));
  return {};
}

void BulkSession::begin(Blob blob) {
  SANGAM_ASSERT(undecided() != nullptr, reader_);
  std::erase_if(blob.pieces, [](const auto& piece) { return piece.empty(); });
  size_ = done_ = Bytes{0};
  for (const auto& piece : blob.pieces) size_ += Bytes(std::int64_t(piece.size()));
  piece_ = offset_ = 0;
  blob_ = std::move(blob);
}

wire::BulkRefused BulkSession::refuse(const Error& error) {
  SANGAM_ASSERT(undecided() != nullptr, reader_);
  wire::BulkRefused refused{asks_.front().number, error.code, error.context};
  asks_.pop_front();
  return refused;
}

BulkSession::Part BulkSession::next_part() {
  SANGAM_ASSERT(can_send(), reader_);
  Part part{{asks_.front().number, size_, done_, {}, blob_->hash}, {}, blob_->pin};
  if (piece_ < blob_->pieces.size()) {
    const std::span rest = blob_->pieces[piece_].subspan(offset_);
    part.bytes = rest.first(std::min(rest.size(), part_max_));
    offset_ += part.bytes.size();
    if (offset_ == blob_->pieces[piece_].size()) {
      ++piece_;
      offset_ = 0;
    }
  }
  part.head.bytes = Bytes(std::int64_t(part.bytes.size()));
  done_ += part.head.bytes;
  ++sent_;
  if (done_ == size_) {
    blob_.reset();
    asks_.pop_front();
  }
  return part;
}

}  // namespace sangam::mesh
