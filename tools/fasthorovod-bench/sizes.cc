#include "tools/fasthorovod-bench/sizes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace fasthorovod::tools {
namespace {

struct Unit {
  char letter;
  std::uint64_t bytes;
};
constexpr std::array<Unit, 3> kUnits{{{'G', 1ull << 30}, {'M', 1ull << 20}, {'K', 1ull << 10}}};
constexpr double kLargest = 1024.0 * 1024 * 1024 * 1024;
constexpr std::uint64_t kMostSizes = 100'000;

core::Error bad_size(std::string_view text) {
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("'{}' is not a size; write bytes, or a number with K, M or G, at most 1024G",
                      text)};
}

}  // namespace

core::Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view digits = text;
  std::uint64_t unit = 1;
  for (const Unit& candidate : kUnits) {
    if (digits.empty() || digits.back() != candidate.letter) continue;
    unit = candidate.bytes;
    digits.remove_suffix(1);
  }
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = code == std::errc{} && end == digits.data() + digits.size();
  const double bytes = value * static_cast<double>(unit);
  if (!whole || !(bytes >= 0) || bytes > kLargest || std::floor(bytes) != bytes)
    return bad_size(text);
  return static_cast<std::uint64_t>(bytes);
}

std::string format_size(std::uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0)
      return fmt::format("{}{}", bytes / unit.bytes, unit.letter);
  }
  return fmt::format("{}", bytes);
}

core::Result<std::vector<std::uint64_t>> size_steps(std::uint64_t first, std::uint64_t last,
                                                    std::uint64_t factor) {
  if (first == 0 || last < first || factor < 2) {
    return core::Error{
        core::ErrorCode::kInvalidArgument,
        fmt::format("sizes from {} to {} by a factor of {}: the first is at least 1, the last not "
                    "smaller, the factor at least 2",
                    format_size(first), format_size(last), factor)};
  }
  std::vector<std::uint64_t> sizes{first};
  while (sizes.back() <= last / factor) sizes.push_back(sizes.back() * factor);
  return sizes;
}

core::Result<std::vector<std::uint64_t>> size_increments(std::uint64_t first, std::uint64_t last,
                                                         std::uint64_t increment) {
  if (first == 0 || last < first || increment == 0 || (last - first) / increment >= kMostSizes) {
    return core::Error{
        core::ErrorCode::kInvalidArgument,
        fmt::format(
            "sizes from {} to {} in increments of {}: the first is at least 1, the last not "
            "smaller, the increment at least 1, and there are at most {} sizes",
            format_size(first), format_size(last), format_size(increment), kMostSizes)};
  }
  std::vector<std::uint64_t> sizes{first};
  while (last - sizes.back() >= increment) sizes.push_back(sizes.back() + increment);
  return sizes;
}

}  // namespace fasthorovod::tools
