// Ranks whose boards are driven by real threads: three lanes a rank, each a thread, joined by
// queues.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ops/chunk_board.h"
#include "test/ops/scalar_reference.h"

namespace fasthorovod::ops {

inline constexpr int kRanks = 3;
inline constexpr int kLanes = 3;

struct Frame {
  transport::FrameHeader header;
  Bytes payload;
};

constexpr std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// A flow in one direction.
class Queue {
 public:
  void push(Frame frame) {
    const std::lock_guard lock(mutex_);
    frames_.push_back(std::move(frame));
  }
  std::optional<Frame> pop() {
    const std::lock_guard lock(mutex_);
    if (frames_.empty()) return std::nullopt;
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

 private:
  std::mutex mutex_;
  std::deque<Frame> frames_;
};

/// Counts events and lets threads wait for the next one.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    ++rings_;
    rung_.notify_all();
  }
  std::uint64_t rings() {
    const std::lock_guard lock(mutex_);
    return rings_;
  }
  void wait_beyond(std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    rung_.wait(lock, [&] { return rings_ > seen; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
};

struct Node {
  Bell bell;      // for its lanes: work, data or the end
  Bell finished;  // rings once an operation
  ChunkBoard board{[](int, const core::Error& error) { ADD_FAILURE() << error.message; },
                   [this] { bell.ring(); }};
  std::array<std::optional<Frame>, index(kRanks) * kLanes> parked;
};

/// All flows of all ranks, and the threads that serve them. Thread: any.
class ThreadedBoards final {
 public:
  ThreadedBoards();
  ~ThreadedBoards() { stop(); }

  [[nodiscard]] Node& node(int rank) { return nodes_[index(rank)]; }

  /// Ends the lanes; idempotent.
  void stop();

 private:
  Queue& queue(int from, int to, int lane) {
    return queues_[(index(from) * kRanks + index(to)) * kLanes + index(lane)];
  }
  bool send_one(int rank, int peer, int lane);
  bool receive_one(int rank, int peer, int lane);
  void run_lane(int rank, int lane);

  std::array<Node, kRanks> nodes_;
  std::array<Queue, index(kRanks) * kRanks * kLanes> queues_;
  std::atomic<bool> stop_ = false;  // partner: the lanes' loops
  std::vector<std::jthread> lanes_;
};

}  // namespace fasthorovod::ops
