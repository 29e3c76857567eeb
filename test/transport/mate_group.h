// Helpers of the tests in which ranks of one host meet: a world of plane_group.h, whose ranks also
// exchange arenas.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/transport/plane_group.h"
#include "transport/arena.h"
#include "transport/mate.h"

namespace fasthorovod::transport::testing {

/// How a rank's start ended. Its rank stands in the first byte of its arena.
struct Met {
  std::unique_ptr<ControlPlane> plane;  // null when the rendezvous failed already
  Arena arena;
  core::Result<std::vector<Mate>> mates;
};

/// Starts one rank on the calling thread.
Met meet_here(World& world, const core::Config& config, std::uint32_t epoch = 0);
/// The same on a thread of its own.
std::future<Met> meet(World& world, const core::Config& config, std::uint32_t epoch = 0);
/// All ranks, which are expected to come up; by rank.
std::vector<Met> meet_all(World& world, const std::function<void(core::Config&)>& change = {},
                          std::uint32_t epoch = 0);

std::vector<int> ranks_of(const Met& met);
/// What the mates' memory says.
std::vector<int> ranks_in_memory(const Met& met);

/// The names of the doors at which this process listens.
std::set<std::string> doors_of_this_process();

}  // namespace fasthorovod::transport::testing
