// A ring of small records in memory that two processes share: one writes, one reads, neither waits
// for a lock. Each side keeps its own cursor in private memory and believes the other's only as far
// as it makes sense, so a process that died or went mad can stop the ring, and no more.
//
// Sleeping: the reader sets `armed`, looks again, then sleeps; the writer publishes, then looks at
// `armed` (all sequentially consistent, so one of the two sees the other). A full ring is the same
// with the roles changed: the writer sets `starved` and keeps the record to itself; the reader
// looks at it after reading. Who is to wake the other side is told by the return values; how (a
// bell) is the owner's business.
//
// Thread: each end has one owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <type_traits>

#include "core/result.h"

namespace fasthorovod::transport {

/// In shared memory; made by whoever owns that memory.
template <typename Record>
struct SharedRing {
  static_assert(std::is_trivially_copyable_v<Record>);
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  static constexpr std::uint32_t kSlots = 128;  // divides 2^32, so that cursors may wrap

  alignas(64) std::atomic<std::uint32_t> written{0};
  alignas(64) std::atomic<std::uint32_t> read{0};
  alignas(64) std::atomic<std::uint32_t> armed{0};    // the reader wants to be woken
  alignas(64) std::atomic<std::uint32_t> starved{0};  // the writer wants to be woken
  Record records[kSlots] = {};
};

template <typename Record>
class RingWriter final {
 public:
  explicit RingWriter(SharedRing<Record>& ring) : ring_(ring) {}

  /// Never fails: what does not fit waits here for flush(). True when the reader is to be woken.
  [[nodiscard]] bool write(const Record& record) {
    waiting_.push_back(record);
    return flush();
  }

  /// Writes what waits, as far as there is room. True when the reader is to be woken.
  [[nodiscard]] bool flush() {
    bool wrote = false;
    while (!waiting_.empty() && has_room()) {
      ring_.records[written_ % SharedRing<Record>::kSlots] = waiting_.front();
      ring_.written.store(++written_);
      waiting_.pop_front();
      wrote = true;
    }
    return wrote && ring_.armed.exchange(0) != 0;
  }

 private:
  [[nodiscard]] bool full() const {
    return written_ - ring_.read.load() >= SharedRing<Record>::kSlots;
  }
  [[nodiscard]] bool has_room() const {
    if (!full()) return true;
    ring_.starved.store(1);
    return !full();
  }

  SharedRing<Record>& ring_;
  std::uint32_t written_ = 0;
  std::deque<Record> waiting_;
};

template <typename Record>
class RingReader final {
 public:
  explicit RingReader(SharedRing<Record>& ring) : ring_(ring) {}

  /// The next record, or none. kProtocol when the other side's cursor makes no sense.
  [[nodiscard]] core::Result<std::optional<Record>> read() {
    const std::uint32_t there = ring_.written.load() - read_;
    if (there > SharedRing<Record>::kSlots) {
      return core::Error{core::ErrorCode::kProtocol, "the mailbox holds more than it can"};
    }
    if (there == 0) return std::optional<Record>();
    std::optional<Record> record = ring_.records[read_ % SharedRing<Record>::kSlots];
    ring_.read.store(++read_);
    return record;
  }

  /// After reading: true when the writer is to be woken, because it waited for room.
  [[nodiscard]] bool take_starved() {
    return ring_.starved.load() != 0 && ring_.starved.exchange(0) != 0;
  }

  /// Before sleeping: from now on the writer wakes the reader. False: there is something to read.
  [[nodiscard]] bool arm() {
    ring_.armed.store(1);
    return ring_.written.load() == read_;
  }

 private:
  SharedRing<Record>& ring_;
  std::uint32_t read_ = 0;
};

}  // namespace fasthorovod::transport
