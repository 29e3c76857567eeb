#include "ops/shared_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ops/host_team.h"

namespace fasthorovod::ops {

namespace {

std::size_t in_mebibytes(std::size_t bytes) { return (bytes + (std::size_t{1} << 20) - 1) >> 20; }

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
    : rank_(rank), own_(std::make_shared<Own>(std::move(arena), limit)), mates_(std::move(mates)) {}

SharedMemory::Own::Own(transport::Arena made, std::size_t limit)
    : arena(std::move(made)),
      heap(arena, arena.bytes().subspan(HostTeam::table_bytes()), limit - HostTeam::table_bytes()) {
}

core::Result<std::shared_ptr<std::byte>> SharedMemory::lend(std::size_t bytes) {
  const std::span<std::byte> block = own_->heap.allocate(bytes);
  if (block.empty()) {
    return core::Error{
        core::ErrorCode::kUnavailable,
        fmt::format("no room for {} MiB of shared memory on rank {}: {} of {} MiB are taken "
                    "(FASTHOROVOD_ARENA_MB sets the limit)",
                    in_mebibytes(bytes), rank_, in_mebibytes(own_->heap.used()),
                    in_mebibytes(own_->heap.limit())),
        rank_};
  }
  // A forked child has no part in the arena: there it stays as it is, mapping and all.
  const auto give_back = [own = own_, block, owner = ::getpid()](std::byte*) mutable {
    if (::getpid() == owner) return own->heap.release(block);
    [[maybe_unused]] auto* const abandoned = new std::shared_ptr<Own>(std::move(own));
  };
  return std::shared_ptr<std::byte>(block.data(), give_back);
}

std::vector<HostSeat> SharedMemory::seats() const {
  std::vector<HostSeat> seats{{rank_, arena().bytes()}};
  for (const transport::Mate& mate : mates_) seats.push_back({mate.rank, mate.arena.bytes()});
  std::ranges::sort(seats, {}, &HostSeat::rank);
  return seats;
}

}  // namespace fasthorovod::ops
