// The way of one kind of step through an operation: piece by piece, and in each piece through some
// of its stripes, in blocks small enough that other operations are not kept waiting. Pure
// bookkeeping. Thread: owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/host_layout.h"

namespace fasthorovod::ops {

/// Part of a stripe.
struct HostBlock {
  std::uint32_t piece = 0;
  int stripe = 0;
  std::uint64_t offset = 0;  // in the stripe
  std::uint64_t bytes = 0;
};

class HostSweep final {
 public:
  static constexpr std::uint64_t kBlockBytes = 256U << 10;  // whole elements of every type

  /// Through `stripes` of every piece, in that order as far as they are ready. `layout` outlives
  /// it.
  HostSweep(const HostLayout& layout, std::vector<int> stripes);

  /// Pieces that are behind it, which is also the piece it is at.
  [[nodiscard]] std::uint32_t piece() const { return piece_; }
  [[nodiscard]] bool over() const { return piece_ == layout_.pieces; }

  /// The next block of the piece, of the first stripe that is not through and ready(stripe).
  template <typename Ready>
  [[nodiscard]] std::optional<HostBlock> next(Ready ready) const {
    for (std::size_t i = 0; i < stripes_.size(); ++i) {
      if (taken_[i] < bytes_[i] && ready(stripes_[i])) return block(i);
    }
    return std::nullopt;
  }

  /// That block, which next() returned, is done.
  void took(const HostBlock& block);

  [[nodiscard]] bool piece_is_through() const { return left_ == 0; }
  void go_on();  // to the next piece
  void restart();

 private:
  [[nodiscard]] HostBlock block(std::size_t index) const;
  void enter_piece();

  const HostLayout& layout_;
  const std::vector<int> stripes_;
  std::uint32_t piece_ = 0;
  std::vector<std::uint64_t> bytes_;  // of each of the stripes, in this piece
  std::vector<std::uint64_t> taken_;
  std::uint64_t left_ = 0;  // in all of them
};

}  // namespace fasthorovod::ops
