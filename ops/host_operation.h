// One all-reduce among ranks of a host (and, where the layout crosses hosts, through the chunk
// board beyond it), as a HostTeam runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"
#include "core/result.h"
#include "ops/host_layout.h"

namespace fasthorovod::ops {

/// With so many bytes of output on a host, of all its ranks, they leave the caches from one
/// operation to the next.
inline constexpr std::uint64_t kLeastBeyondCaches = std::uint64_t{64} << 20;

/// What small operations of a kind have in common: of one group, which says who its members are,
/// and so the layout, too. With these they have the same description.
struct HostKind {
  std::uint32_t group = 0;  // as on the wire
  std::uint64_t bytes = 0;
  core::DataType type = core::DataType::kUint8;
  core::Reduction reduction = core::Reduction::kSum;
  friend bool operator==(const HostKind&, const HostKind&) = default;
};

/// One of them. Input and output as of HostOperation.
struct HostCall {
  std::uint64_t sequence = 0;
  std::uint32_t fingerprint = 0;
  std::span<const std::byte> input;
  std::span<std::byte> output;
};

/// Input, output and area are lent until `done`; the area goes back to the team by itself.
struct HostOperation {
  std::uint32_t group = 0;  // as on the wire
  std::uint64_t sequence = 0;
  std::uint32_t fingerprint = 0;
  std::string title;        // for messages: "all-reduce of 'conv1.weight' and 3 more"
  std::string description;  // what this rank believes it to be, for its mates
  HostLayout layout;
  std::vector<int> members;  // world ranks of the group, by position
  std::span<const std::byte> input;
  std::span<std::byte> output;  // the input's memory, or apart from it
  core::DataType type = core::DataType::kUint8;
  core::Reduction reduction = core::Reduction::kSum;  // an average adds; scaling is the caller's
  std::span<std::byte> area;                          // HostTeam::reserve(layout.area_bytes())
  std::uint64_t least_beyond_caches = kLeastBeyondCaches;
  std::function<void(core::Status)> done;  // exactly once, on the team's thread; must be quick

  [[nodiscard]] bool output_leaves_caches() const {
    return layout.bytes * layout.hosts[static_cast<std::size_t>(layout.host)].size() >=
           least_beyond_caches;
  }
  [[nodiscard]] HostKind kind() const { return {group, layout.bytes, type, reduction}; }
};

}  // namespace fasthorovod::ops
