#include "core/request.h"

#include <algorithm>
#include <functional>

namespace fasthorovod::core {

std::string_view to_string(OpKind op) {
  switch (op) {
    case OpKind::kAllreduce:
      return "all-reduce";
    case OpKind::kAllgather:
      return "all-gather";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kBarrier:
      return "barrier";
    case OpKind::kJoin:
      return "join";
    case OpKind::kAddGroup:
      return "new process set";
    case OpKind::kRemoveGroup:
      return "removal of a process set";
  }
  return "unknown operation";
}

std::optional<OpKind> op_kind_from_wire(std::uint8_t value) {
  if (value > static_cast<std::uint8_t>(OpKind::kRemoveGroup)) return std::nullopt;
  return static_cast<OpKind>(value);
}

std::uint64_t element_count(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t dimension : shape) count *= static_cast<std::uint64_t>(dimension);
  return count;
}

std::uint64_t byte_count(const Request& request) {
  return element_count(request.shape) * size_of(request.type);
}

bool is_ascending(const std::vector<int>& members) {
  const auto disorder = std::ranges::adjacent_find(members, std::greater_equal<>());
  return disorder == members.end() && (members.empty() || members.front() >= 0);
}

bool is_valid_shape(const std::vector<std::int64_t>& shape) {
  if (shape.size() > kMaxDimensions) return false;
  // A zero anywhere makes the product zero, but the other dimensions must still be sane: whoever
  // multiplies some of them (rows of an all-gather) must not overflow either.
  std::uint64_t count = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return false;
    if (dimension == 0) continue;
    if (count > kMaxElements / static_cast<std::uint64_t>(dimension)) return false;
    count *= static_cast<std::uint64_t>(dimension);
  }
  return true;
}

}  // namespace fasthorovod::core
