// What came for operations of the ordered door that this rank has not started yet, until it does.
// Thread: the ChunkBoard's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace fasthorovod::ops {

template <typename Record>
class EarlyRecords final {
 public:
  /// Keeps records of so much weight in all.
  explicit EarlyRecords(std::size_t most) : most_(most) {}

  /// False: there is too much, which no healthy peer causes.
  [[nodiscard]] bool add(std::uint32_t group, std::uint64_t sequence, Record record,
                         std::size_t weight = 1) {
    if (weight > most_ - weight_) return false;
    weight_ += weight;
    Kept& kept = by_operation_[{group, sequence}];
    kept.weight += weight;
    kept.records.push_back(std::move(record));
    return true;
  }

  /// Takes out those of an operation.
  std::vector<Record> take(std::uint32_t group, std::uint64_t sequence) {
    const auto found = by_operation_.find({group, sequence});
    if (found == by_operation_.end()) return {};
    std::vector<Record> records = std::move(found->second.records);
    weight_ -= found->second.weight;
    by_operation_.erase(found);
    return records;
  }

  void drop_group(std::uint32_t group) {
    auto entry = by_operation_.lower_bound({group, 0});
    while (entry != by_operation_.end() && entry->first.first == group) {
      weight_ -= entry->second.weight;
      entry = by_operation_.erase(entry);
    }
  }

 private:
  struct Kept {
    std::size_t weight = 0;
    std::vector<Record> records;
  };

  const std::size_t most_;
  std::size_t weight_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Kept> by_operation_;
};

}  // namespace fasthorovod::ops
