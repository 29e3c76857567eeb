#include "ops/operation.h"

#include <algorithm>
#include <numeric>

namespace fasthorovod::ops {

bool may_go_early(const Schedule& schedule) {
  const auto comes_from = [&schedule](int peer) {
    return std::ranges::find(schedule.receives, peer, &Receive::peer) != schedule.receives.end();
  };
  std::uint64_t bytes = 0;
  for (const Send& send : schedule.sends) bytes += send.span.bytes;
  const bool parks = schedule.pieces > 0 && !schedule.receives_early;
  return !parks && bytes <= kEarlyBytes &&
         std::ranges::all_of(schedule.sends, comes_from, &Send::peer);
}

}  // namespace fasthorovod::ops
