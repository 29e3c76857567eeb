// What a lane counts as it goes. Thread: the lane adds, any thread reads; each counter stands
// alone, so all accesses are relaxed.
#pragma once

#include <atomic>
#include <cstdint>

namespace fasthorovod::transport {

class Counter final {
 public:
  void add(std::uint64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct LaneCounters {
  Counter bytes_sent;
  Counter bytes_received;
  Counter chunks_sent;
  Counter chunks_received;
  Counter turns;
};

}  // namespace fasthorovod::transport
