// Ready notices of operations that this rank has not started yet, until it does. Small records, and
// not many: a rank starts a few operations of a group ahead of the others, then it needs them.
// Thread: the ChunkBoard's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ops/ready_notice.h"

namespace fasthorovod::ops {

class EarlyNotices final {
 public:
  static constexpr std::size_t kMost = 1U << 16;

  struct Early {
    int peer = 0;
    ReadyNotice notice;
  };

  /// False: there are too many, which no healthy peer causes.
  [[nodiscard]] bool add(std::uint32_t group, std::uint64_t sequence, Early early);
  /// Takes out those of an operation.
  std::vector<Early> take(std::uint32_t group, std::uint64_t sequence);
  void drop_group(std::uint32_t group);

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Early>> by_operation_;
  std::size_t count_ = 0;
};

}  // namespace fasthorovod::ops
