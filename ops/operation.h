// One collective as the board executes it: a schedule over a buffer, and how the wire names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"
#include "core/result.h"
#include "ops/schedule.h"
#include "ops/wire_group.h"

namespace fasthorovod::ops {

/// One collective to execute. Buffer, source and scratch are lent until `done`.
struct Operation {
  std::uint32_t epoch = 0;
  std::uint32_t group = 0;  // as on the wire; it tells the door, too
  std::uint64_t sequence = 0;
  std::uint32_t fingerprint = 0;
  std::string title;        // for messages: "all-reduce of 'conv1.weight' and 3 more"
  std::string description;  // ordered door: what this rank believes it to be, for its peers
  Schedule schedule;
  std::vector<int> members;  // world ranks of the group, by position
  std::span<std::byte> buffer;
  /// Where sends come from when that is not the buffer.
  std::optional<std::span<const std::byte>> source;
  /// Where the schedule's sums have what comes; its contents mean nothing before and after.
  std::span<std::byte> scratch;
  core::DataType type = core::DataType::kUint8;
  core::Reduction reduction = core::Reduction::kSum;
  std::function<void(core::Status)>
      done;  // exactly once, on the thread that finished it; must be quick

  /// Ordered door: chunks leave at once, also to ranks that have not said that they are ready, and
  /// are kept there. See may_go_early(). The fingerprint says what all transfers are.
  bool early = false;

  /// Where pieces have gates: ordered peers hear that this rank is ready at the first open_gates(),
  /// not at the start.
  bool held = false;
  /// Where pieces have gates: a piece's gate is open and all its transfers, both ways, are over.
  /// Once for each piece, in any order, before `done`, unless the operation fails first. Any
  /// thread; must be quick.
  std::function<void(std::uint32_t piece)> piece_done;

  [[nodiscard]] Door door() const { return door_of(group); }
  [[nodiscard]] std::span<const std::byte> sent_from() const {
    return source.value_or(std::span<const std::byte>(buffer));
  }
};

/// Sends of so many bytes in all may leave early.
inline constexpr std::uint64_t kEarlyBytes = 64 << 10;

/// Whether a schedule's chunks may leave early: they are small and park at no gate, and this rank
/// gets something from every rank that it sends to. So it does not end before they have started,
/// and while it is the only operation of its group here, no rank ever keeps those of two.
[[nodiscard]] bool may_go_early(const Schedule& schedule);

/// Calls visit(rank of the world) for the other end of each transfer; a rank may come several
/// times.
template <typename Visitor>
void for_each_peer(const Operation& operation, Visitor visit) {
  const auto visit_position = [&](int position) {
    visit(operation.members[static_cast<std::size_t>(position)]);
  };
  for (const Send& send : operation.schedule.sends) visit_position(send.peer);
  for (const Receive& receive : operation.schedule.receives) visit_position(receive.peer);
}

}  // namespace fasthorovod::ops
