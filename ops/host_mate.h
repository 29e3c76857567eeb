// What one rank sees of another one of its host in one operation. Thread: owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "ops/host_layout.h"
#include "ops/host_table.h"

namespace fasthorovod::ops {

/// A rank of this host and its arena, as mapped here.
struct HostSeat {
  int rank = 0;  // in the world
  std::span<std::byte> arena;
};

class HostMate final {
 public:
  enum class State {
    kAbsent,  // it has not begun the operation
    kHere,    // it has, and believes it to be the same
    kOther,   // it believes it to be another one: nothing of it is read
    kFailed,  // it has given the operation up
    kGone,    // it has finished, and needs nothing more of this rank
  };

  explicit HostMate(const HostSeat& seat);

  /// The next operation with the same layout: the mate is absent again.
  void begin_next();

  /// Looks again; the state before and now may differ.
  State look(const HostKey& key, std::uint32_t fingerprint, const HostLayout& layout);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] int rank() const { return seat_.rank; }
  [[nodiscard]] HostBell& bell() const { return table_.bell(); }
  /// What it believes the operation to be. Only while it is here, other or failed.
  [[nodiscard]] std::string description() const { return sighting_.description(); }

  /// Whether a counter of its slot for `piece` has come to that piece, or a later one.
  [[nodiscard]] bool reached(std::atomic<std::uint32_t> HostSlot::*counter, std::uint32_t piece,
                             std::uint32_t slots) const;
  /// Its area. Only while it is here.
  [[nodiscard]] const std::byte* area() const { return seat_.arena.data() + sighting_.area; }
  /// What it lends, and where: null when it lends no such thing. Only while it is here.
  [[nodiscard]] const std::byte* input() const { return lent(sighting_.loan.input); }
  [[nodiscard]] std::byte* output() const { return lent(sighting_.loan.output); }
  /// Of the output that it lends, what its mates write.
  [[nodiscard]] ByteSpan output_pages(std::uint64_t bytes) const {
    return sighting_.loan.pages(bytes);
  }
  /// False: what was read of its loan before this call may have been something else.
  [[nodiscard]] bool still_lends() const noexcept;
  /// Whether it is writing to outputs that it was lent: whichever it was last seen to do.
  [[nodiscard]] bool writes() const { return sighting_.entry != nullptr && sighting_.writes(); }

 private:
  [[nodiscard]] std::optional<HostSighting> find(const HostKey& key);
  [[nodiscard]] State first_state(std::uint32_t fingerprint, const HostLayout& layout) const;
  [[nodiscard]] std::byte* lent(std::uint64_t offset) const {
    return offset == HostLoan::kNothing ? nullptr : seat_.arena.data() + offset;
  }

  HostSeat seat_;
  HostTable table_;
  State state_ = State::kAbsent;
  std::uint64_t searched_ = std::numeric_limits<std::uint64_t>::max();  // at that publication
  HostSighting sighting_;
};

}  // namespace fasthorovod::ops
