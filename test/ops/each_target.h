// For tests of kernels: runs every case on each instruction set that this processor has. Only in
// files that included ops/kernels/targets.h before any header of Highway.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "test/ops/scalar_reference.h"

namespace fasthorovod::ops {

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

/// Copies of values at an odd address, with a guard behind.
struct Misplaced {
  Misplaced(const Bytes& values, std::size_t at)
      : offset(at), size(values.size()), memory(at + size + 1) {
    std::ranges::copy(values, data());
    memory.back() = kGuard;
  }
  std::byte* data() { return memory.data() + offset; }
  [[nodiscard]] Bytes values() const {
    return {memory.begin() + static_cast<std::ptrdiff_t>(offset), memory.end() - 1};
  }
  [[nodiscard]] bool is_guarded() const { return memory.back() == kGuard; }

  static constexpr std::byte kGuard{0xA5};
  std::size_t offset;
  std::size_t size;
  Bytes memory;
};

}  // namespace fasthorovod::ops
