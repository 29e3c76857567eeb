// The group field of a frame: the group, and which sequence space the operation belongs to. Named
// operations, ordered ones and messages of one group count apart: the world's group is used through
// all three at once. Groups of the named door other than the world, its process sets, have a space
// of their own: their numbers are the coordinator's, those of the ordered door's groups are not.
//
// The named operations of the world alone may park flows, since all ranks start them in one order
// with one window. Those of a process set run on the board as ordered ones do. Pure functions.
#pragma once

#include <cstdint>

#include "core/request.h"

namespace fasthorovod::ops {

enum class Door : std::uint8_t {
  kNamed,    // sequences are the coordinator's; a chunk that comes early parks its flow
  kOrdered,  // sequences are the group's; chunks leave only to ranks that are ready: process sets
             // too
  kMessage,  // sequences are the sender's, in no order; ready means: matched with a receive
};

inline constexpr std::uint32_t kOrderedSpace = 1U << 30;
inline constexpr std::uint32_t kMessageSpace = 1U << 31;
inline constexpr std::uint32_t kSetSpace = kOrderedSpace | kMessageSpace;
/// Ids of groups are smaller than this.
inline constexpr std::uint32_t kGroupIds = 1U << 30;

constexpr std::uint32_t wire_group(core::GroupId group, Door door) {
  if (door == Door::kNamed) return group;
  return group | (door == Door::kOrdered ? kOrderedSpace : kMessageSpace);
}

/// The group field of a named operation: of the world, or of a process set.
constexpr std::uint32_t named_wire_group(core::GroupId group) {
  return group == core::kWorldGroup ? group : group | kSetSpace;
}

constexpr bool is_process_set(std::uint32_t wire) { return (wire & kSetSpace) == kSetSpace; }

/// Whether the coordinator planned it, in whatever way it runs on the board.
constexpr bool is_planned(std::uint32_t wire) {
  return (wire & kSetSpace) == 0 || is_process_set(wire);
}

constexpr core::GroupId group_of(std::uint32_t wire) { return wire & (kGroupIds - 1); }

constexpr Door door_of(std::uint32_t wire) {
  if (is_process_set(wire)) return Door::kOrdered;
  if ((wire & kMessageSpace) != 0) return Door::kMessage;
  return (wire & kOrderedSpace) != 0 ? Door::kOrdered : Door::kNamed;
}

}  // namespace fasthorovod::ops
