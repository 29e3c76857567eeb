// For tests of kernels: runs every case on each instruction set that this processor has. Only in
// files that included compression/kernels/targets.h before any header of Highway.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fasthorovod::compression {

// Around the number of lanes of every type and instruction set.
inline constexpr std::size_t kCounts[] = {0,  1,  2,  3,  4,  5,  7,   8,   9,   15,  16,  17,
                                          31, 32, 33, 63, 64, 65, 127, 128, 129, 514, 1000};
inline constexpr std::size_t kOffsets[] = {0, 1, 3};

class EachTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { use(GetParam()); }
  void TearDown() override { use(0); }

  static void use(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

using Bytes = std::vector<std::byte>;

/// Copies of values at an odd address, with a guard on either side.
struct Misplaced {
  Misplaced(const Bytes& values, std::size_t at)
      : offset(at + 1), size(values.size()), memory(offset + size + 1, kGuard) {
    std::ranges::copy(values, data());
  }
  std::byte* data() { return memory.data() + offset; }
  [[nodiscard]] Bytes values() const {
    return {memory.begin() + static_cast<std::ptrdiff_t>(offset), memory.end() - 1};
  }
  [[nodiscard]] bool is_guarded() const {
    return memory[offset - 1] == kGuard && memory.back() == kGuard;
  }

  static constexpr std::byte kGuard{0xA5};
  std::size_t offset;
  std::size_t size;
  Bytes memory;
};

}  // namespace fasthorovod::compression
