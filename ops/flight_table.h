// The operations in flight of one rank, and what each group has started last. Memory: what is in
// flight, and one entry a group. Thread: the ChunkBoard's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/schedule_runner.h"

namespace fasthorovod::ops {

class FlightTable final {
 public:
  /// Notes the start of an operation of a group. False, and nothing is noted, when its turn has
  /// passed.
  bool begin(const Operation& operation);

  /// An operation of a group was run elsewhere; it comes after all that have begun.
  void pass(std::uint32_t group, std::uint64_t sequence) { groups_[group].last_started = sequence; }

  /// Adds an operation that has begun; its id is never used again.
  ScheduleRunner& add(Operation operation);

  /// By id, or null.
  [[nodiscard]] ScheduleRunner* find(std::uint64_t id) const;

  /// The operation a header names, or null.
  [[nodiscard]] ScheduleRunner* find(const transport::FrameHeader& header) const;

  /// True when the operation a header names comes after all that its group has started.
  [[nodiscard]] bool is_ahead(const transport::FrameHeader& header) const;

  /// The first operation started of those in flight, or null.
  [[nodiscard]] const ScheduleRunner* oldest() const;

  /// Calls visit(runner) for each operation that needs `peer`, in the order of their start.
  template <typename Visitor>
  void for_each_that_needs(int peer, Visitor visit) const {
    for (const auto& [id, runner] : by_id_) {
      if (runner->needs(peer)) visit(*runner);
    }
  }

  /// Notes that an operation failed, also one that did not start: what its peers sent before they
  /// heard of it is dropped.
  void mark_failed(std::uint32_t group, std::uint64_t sequence);
  [[nodiscard]] bool has_failed(const transport::FrameHeader& header) const;

  /// An operation of the ordered door that ended lately; some are remembered.
  struct Past {
    std::uint64_t sequence = 0;
    std::uint32_t fingerprint = 0;
    std::string description;
  };
  void note_past(const Operation& operation);
  [[nodiscard]] const Past* past(const transport::FrameHeader& header) const;

  void forget_group(std::uint32_t group);
  [[nodiscard]] bool is_forgotten(std::uint32_t group) const { return forgotten_.contains(group); }

  /// Takes an operation out.
  Operation remove(std::uint64_t id);

  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

 private:
  static constexpr std::size_t kPast = 8;
  static constexpr std::size_t kFailures = 1024;

  struct Group {
    std::uint64_t last_started = 0;
    std::map<std::uint64_t, ScheduleRunner*> by_sequence;
    std::deque<Past> past;
    std::set<std::uint64_t> failed;  // the latest
  };

  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<ScheduleRunner>> by_id_;
  std::unordered_map<std::uint32_t, Group> groups_;
  std::set<std::uint32_t> forgotten_;
};

}  // namespace fasthorovod::ops
