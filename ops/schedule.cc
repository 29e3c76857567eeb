#include "ops/schedule.h"

#include <utility>

namespace fasthorovod::ops {

std::uint64_t Schedule::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const Send& send : sends) bytes += send.span.bytes;
  return bytes;
}

int Shape::neighbour(int distance) const {
  const int position = (rank + distance) % size;
  return position < 0 ? position + size : position;
}

std::uint32_t add_receive(Schedule& schedule, int peer, ByteSpan span, std::uint32_t hop,
                          Action action) {
  schedule.receives.push_back({peer, span, hop, action, {}, 0, kNoSum});
  return static_cast<std::uint32_t>(schedule.receives.size() - 1);
}

std::uint32_t add_send(Schedule& schedule, int peer, ByteSpan span, std::uint32_t hop) {
  schedule.sends.push_back({peer, span, hop, 0, 0, kNoSum});
  return static_cast<std::uint32_t>(schedule.sends.size() - 1);
}

void add_dependency(Schedule& schedule, std::uint32_t receive, std::uint32_t send) {
  schedule.receives[receive].unlocks.push_back(send);
  ++schedule.sends[send].waits_for;
}

void add_to_sum(Schedule& schedule, Send& send, std::uint32_t sum) {
  send.sum = sum;
  ++schedule.sums[sum].waits_for;
}

void add_to_sum(Schedule& schedule, Receive& receive, std::uint32_t sum) {
  receive.sum = sum;
  ++schedule.sums[sum].waits_for;
}

}  // namespace fasthorovod::ops
