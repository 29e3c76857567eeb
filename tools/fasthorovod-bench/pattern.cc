#include "tools/fasthorovod-bench/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace fasthorovod::tools {
namespace {

using core::DataType;
using core::Reduction;

constexpr int kPeriod = static_cast<int>(kPatternPeriod);
constexpr int kSummands = 3;  // sums are of 0, 1 and 2
// Compared in one go where nothing is wrong.
constexpr std::size_t kPeriodsOfABlock = 512;

std::int64_t value_of(DataType type, Reduction reduction, int rank, int place) {
  if (type == DataType::kBool) {
    const bool chosen = rank % kPeriod == place;
    return (chosen != (reduction == Reduction::kProduct || reduction == Reduction::kMin)) ? 1 : 0;
  }
  switch (reduction) {
    case Reduction::kProduct:
      return rank % kPeriod == place ? 2 : 1;
    case Reduction::kMin:
    case Reduction::kMax:
      return (rank + place) % kPeriod;
    default:
      return (rank + place) % kSummands;
  }
}

std::int64_t combine(DataType type, Reduction reduction, std::int64_t a, std::int64_t b) {
  switch (reduction) {
    case Reduction::kProduct:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                       static_cast<std::uint64_t>(b));
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    default:
      return type == DataType::kBool ? a | b : a + b;
  }
}

template <typename T>
void put(Pattern& pattern, T value) {
  const std::size_t at = pattern.size();
  pattern.resize(at + sizeof(T));
  std::memcpy(pattern.data() + at, &value, sizeof(T));
}

// To nearest even; the values are far from the largest.
std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

// Integers wrap to T before they are divided, as the engine's do.
template <typename T>
void put_integer(Pattern& pattern, std::int64_t value, std::int64_t divisor) {
  put(pattern, static_cast<T>(static_cast<T>(value) / static_cast<T>(divisor)));
}

void put_element(Pattern& pattern, DataType type, std::int64_t value, int divisor) {
  const double factor = 1.0 / divisor;
  const float small = static_cast<float>(value) * static_cast<float>(factor);
  const double large = static_cast<double>(value) * factor;
  switch (type) {
    case DataType::kBool:
      return put(pattern, static_cast<std::uint8_t>(value));
    case DataType::kUint8:
      return put_integer<std::uint8_t>(pattern, value, divisor);
    case DataType::kInt8:
      return put_integer<std::int8_t>(pattern, value, divisor);
    case DataType::kUint16:
      return put_integer<std::uint16_t>(pattern, value, divisor);
    case DataType::kInt16:
      return put_integer<std::int16_t>(pattern, value, divisor);
    case DataType::kUint32:
      return put_integer<std::uint32_t>(pattern, value, divisor);
    case DataType::kInt32:
      return put_integer<std::int32_t>(pattern, value, divisor);
    case DataType::kUint64:
      return put_integer<std::uint64_t>(pattern, value, divisor);
    case DataType::kInt64:
      return put_integer<std::int64_t>(pattern, value, divisor);
    case DataType::kFloat16:
      return put(pattern, static_cast<_Float16>(small));
    case DataType::kBfloat16:
      return put(pattern, bfloat16_bits(small));
    case DataType::kFloat32:
      return put(pattern, static_cast<float>(large));
    case DataType::kFloat64:
      return put(pattern, large);
  }
}

// The largest number up to which a type holds every integer, as an average needs them; 0: integers
// wrap, which is as good.
std::int64_t largest_exact(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return 1 << 11;
    case DataType::kBfloat16:
      return 1 << 8;
    case DataType::kFloat32:
      return 1 << 24;
    default:
      return 0;
  }
}

// How many ranks may contribute; the largest float16 is below 2^16.
std::int64_t most_ranks(DataType type, Reduction reduction) {
  const bool sums = reduction == Reduction::kSum || reduction == Reduction::kAverage;
  if (sums && largest_exact(type) != 0) return largest_exact(type) / (kSummands - 1);
  const bool averages_bytes = reduction == Reduction::kAverage && core::size_of(type) == 1;
  if (averages_bytes && type != DataType::kBool) return std::numeric_limits<std::int8_t>::max() / 2;
  if (reduction != Reduction::kProduct || !core::is_floating(type)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  if (type == DataType::kFloat64) return std::int64_t{1023} * kPeriod;
  return std::int64_t{type == DataType::kFloat16 ? 15 : 127} * kPeriod;
}

std::size_t matching_prefix(std::span<const std::byte> values, const Pattern& block) {
  std::size_t at = 0;
  while (values.size() - at >= block.size() &&
         std::memcmp(values.data() + at, block.data(), block.size()) == 0) {
    at += block.size();
  }
  return at;
}

}  // namespace

core::Status check_exact(DataType type, Reduction reduction, int size) {
  const std::int64_t most = most_ranks(type, reduction);
  if (size <= most) return {};
  return core::Error{core::ErrorCode::kInvalidArgument,
                     fmt::format("the {} of {} is checked bit by bit, which works for at most {} "
                                 "ranks, and there are {}",
                                 core::to_string(reduction), core::to_string(type), most, size)};
}

Pattern contribution(DataType type, Reduction reduction, int rank) {
  Pattern pattern;
  for (int place = 0; place < kPeriod; ++place) {
    put_element(pattern, type, value_of(type, reduction, rank, place), 1);
  }
  return pattern;
}

Pattern expected_result(DataType type, Reduction reduction, int size) {
  Pattern pattern;
  for (int place = 0; place < kPeriod; ++place) {
    std::int64_t value = value_of(type, reduction, 0, place);
    for (int rank = 1; rank < size; ++rank) {
      value = combine(type, reduction, value, value_of(type, reduction, rank, place));
    }
    put_element(pattern, type, value, reduction == Reduction::kAverage ? size : 1);
  }
  return pattern;
}

void fill(std::span<std::byte> values, const Pattern& pattern) {
  std::size_t filled = std::min(values.size(), pattern.size());
  std::copy_n(pattern.begin(), filled, values.begin());
  while (filled < values.size()) {
    const std::size_t next = std::min(filled, values.size() - filled);
    std::memcpy(values.data() + filled, values.data(), next);
    filled += next;
  }
}

std::uint64_t count_wrong(std::span<const std::byte> values, const Pattern& pattern) {
  Pattern block(pattern.size() * kPeriodsOfABlock);
  fill(block, pattern);
  const std::size_t element = pattern.size() / kPatternPeriod;
  std::uint64_t wrong = 0;
  while (true) {
    values = values.subspan(matching_prefix(values, block));
    const std::size_t bytes = std::min(values.size(), block.size());
    for (std::size_t at = 0; at < bytes; at += element) {
      wrong += std::memcmp(values.data() + at, block.data() + at, element) == 0 ? 0 : 1;
    }
    values = values.subspan(bytes);
    if (values.empty()) return wrong;
  }
}

}  // namespace fasthorovod::tools
