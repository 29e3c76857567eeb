// What one rank asks for: the description of an operation, without its data.
//
// Every rank of a group describes each of its operations in a Request; the Coordinator matches them
// by name and answers with a Plan. Immutable values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec_choice.h"
#include "core/data_type.h"
#include "core/reduction.h"

namespace fasthorovod::core {

/// A set of ranks that run collectives together. Group 0 is the whole world.
using GroupId = std::uint32_t;
inline constexpr GroupId kWorldGroup = 0;

/// Wire values: never renumber, only append.
enum class OpKind : std::uint8_t {
  kAllreduce = 0,
  kAllgather = 1,
  kBroadcast = 2,
  kBarrier = 3,
  kJoin = 4,
  kAddGroup = 5,
  kRemoveGroup = 6
};

std::string_view to_string(OpKind op);
std::optional<OpKind> op_kind_from_wire(std::uint8_t value);

/// Operations of the world that make a group known to all ranks, or forgotten.
constexpr bool changes_groups(OpKind op) {
  return op == OpKind::kAddGroup || op == OpKind::kRemoveGroup;
}

/// The largest rank of a shape; a request with more dimensions is refused.
inline constexpr std::size_t kMaxDimensions = 64;

/// The largest element count of a tensor, so that byte counts of a fused item cannot overflow.
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;

struct Request {
  std::string name;  // unique among the operations in flight of its group
  GroupId group = kWorldGroup;
  OpKind op = OpKind::kAllreduce;
  DataType type = DataType::kFloat32;
  Reduction reduction = Reduction::kSum;  // all-reduce only
  int root = -1;                          // broadcast only: a rank of the world, in the group
  double prescale = 1.0;            // all-reduce: each rank's values are multiplied by it first
  double postscale = 1.0;           // all-reduce: the result is multiplied by it last
  CodecChoice codec{};              // all-reduce only
  std::vector<std::int64_t> shape;  // empty for a scalar (one element)
  std::string bundle;               // grouped operations: the name they share; empty when alone
  std::uint32_t bundle_size = 0;    // how many requests that bundle has; 0 when alone
  std::vector<int> members;         // changes of groups: the ranks of the group, ascending

  friend bool operator==(const Request&, const Request&) = default;
};

/// Elements of a shape: the product of its dimensions, 1 for a scalar. The dimensions are not
/// negative.
std::uint64_t element_count(const std::vector<std::int64_t>& shape);

/// True when a shape may travel: at most kMaxDimensions, none negative, and the product of the
/// dimensions that are not zero is at most kMaxElements.
bool is_valid_shape(const std::vector<std::int64_t>& shape);

/// True when ranks may name a group: none twice, none negative, in ascending order.
bool is_ascending(const std::vector<int>& members);

/// The bytes of a request's own tensor.
std::uint64_t byte_count(const Request& request);

}  // namespace fasthorovod::core
