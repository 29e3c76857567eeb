#include "ops/shared_memory.h"

#include <algorithm>
#include <utility>

#include "ops/host_team.h"

namespace fasthorovod::ops {

namespace {

std::size_t bytes_of(int mebibytes) { return static_cast<std::size_t>(mebibytes) << 20; }

}  // namespace

bool SharedMemory::has_mates(const core::World& world) {
  return world.host_names.size() < static_cast<std::size_t>(world.size);
}

core::Result<std::unique_ptr<SharedMemory>> SharedMemory::make(transport::ControlPlane& control,
                                                               int mebibytes) {
  const core::World& world = control.world();
  const std::size_t spare = has_mates(world) ? HostTeam::spare_bytes(largest_area(control)) : 0;
  core::Result<transport::Arena> arena = transport::Arena::create(bytes_of(mebibytes) + spare);
  if (!arena) {
    core::Error error = std::move(arena).error().with_context(world.describe(world.rank));
    error.culprit = world.rank;
    if (has_mates(world)) control.give_up(error);
    return error;
  }
  core::Result<std::vector<transport::Mate>> mates = std::vector<transport::Mate>{};
  if (has_mates(world)) mates = control.meet_mates(*arena);
  if (!mates) return std::move(mates).error();
  return std::unique_ptr<SharedMemory>(
      new SharedMemory(world.rank, *std::move(arena), *std::move(mates), bytes_of(mebibytes)));
}

std::size_t SharedMemory::largest_area(const transport::ControlPlane& control) {
  return HostTeam::largest_area(bytes_of(control.smallest_arena_mb()) - HostTeam::table_bytes());
}

SharedMemory::SharedMemory(int rank, transport::Arena arena, std::vector<transport::Mate> mates,
                           std::size_t limit)
    : rank_(rank),
      arena_(std::move(arena)),
      mates_(std::move(mates)),
      heap_(arena_, arena_.bytes().subspan(HostTeam::table_bytes()),
            limit - HostTeam::table_bytes()) {}

std::vector<HostSeat> SharedMemory::seats() const {
  std::vector<HostSeat> seats{{rank_, arena_.bytes()}};
  for (const transport::Mate& mate : mates_) seats.push_back({mate.rank, mate.arena.bytes()});
  std::ranges::sort(seats, {}, &HostSeat::rank);
  return seats;
}

}  // namespace fasthorovod::ops
