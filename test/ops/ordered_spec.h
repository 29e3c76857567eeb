// What the tests of the ordered door on boards without sockets share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "test/ops/collective.h"

namespace fasthorovod::ops {

/// A small collective of that name at the ordered door; the seed also says how many flows there
/// are.
inline CollectiveSpec ordered_spec(std::string_view algorithm, int size, std::uint64_t seed) {
  CollectiveSpec spec;
  spec.algorithm = find_algorithm(algorithm);
  spec.network = {.size = size, .flows = 1 + static_cast<int>(seed % 3), .window = 4, .seed = seed};
  spec.elements = 101;
  spec.door = Door::kOrdered;
  return spec;
}

/// Checks the algorithm of that row for 1 to 5 ranks, each root and kind of block. `make` gives the
/// spec, as ordered_spec().
template <typename Make>
void check_row(std::size_t row, Make make) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const int size = 1 + static_cast<int>(seed % 5);
    CollectiveSpec spec = make(algorithm_table()[row].name, size, seed);
    spec.root = static_cast<int>(seed) % size;
    spec.blocks = static_cast<int>(seed % 3);
    check_collective(spec);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// Names a test after the row that is its parameter.
inline std::string name_of_row(const testing::TestParamInfo<std::size_t>& info) {
  std::string name(algorithm_table()[info.param].name);
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Ranks that run several operations, each with a buffer of its own.
class BoardsTest : public testing::Test {
 protected:
  Operation operation(const CollectiveSpec& spec, int rank, std::uint64_t sequence) {
    buffers_.push_back(inputs_of(spec)[static_cast<std::size_t>(rank)]);
    return operation_of(spec, rank, buffers_.back(), sequence);
  }
  std::deque<Bytes> buffers_;
};

}  // namespace fasthorovod::ops
