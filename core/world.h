// Who takes part: the ranks of one epoch of one job, and where they sit. Immutable; any thread.
//
// Membership is fixed for the life of an engine. Another world is the next epoch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fasthorovod::core {

/// Tells jobs on one network apart. Not a secret.
using JobId = std::array<std::byte, 16>;

struct World {
  JobId job{};
  std::uint32_t epoch = 0;  // how many worlds of this job came before
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // position among the ranks of this host
  int local_size = 1;
  int cross_rank = 0;  // position of this host among those with a rank of this local number
  int cross_size = 1;
  bool homogeneous = true;           // every host has the same number of ranks
  std::vector<int> host_of_rank{0};  // an index per rank; hosts are numbered by their first rank
  std::vector<std::string> host_names{"localhost"};  // what messages call each host, by that index

  /// "rank 3 (host node-b)", as every message names a rank.
  [[nodiscard]] std::string describe(int any_rank) const;
};

/// What a rank says of its place when it joins.
struct Placement {
  std::string host_identity;  // equal exactly for ranks that share a host
  std::string host_name;      // for messages

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The world as `rank` sees it; `placements` has one entry a rank.
World make_world(const JobId& job, std::uint32_t epoch, int rank,
                 const std::vector<Placement>& placements);

}  // namespace fasthorovod::core
