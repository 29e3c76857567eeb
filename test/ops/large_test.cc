// More elements than 31 bits count: one all-reduce through each door, every element checked.
#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <string>

#include "test/ops/ordered_calls.h"

namespace fasthorovod::ops::testing {
namespace {

constexpr std::size_t kElements = (std::size_t{1} << 31) + 7;
constexpr std::uint64_t kNeededMiB = 8 << 10;  // two ranks, in place
constexpr std::chrono::minutes kLimit{10};

std::uint64_t available_mib() {
  std::ifstream meminfo("/proc/meminfo");
  std::string word;
  std::uint64_t kib = 0;
  while (meminfo >> word) {
    if (word == "MemAvailable:" && meminfo >> kib) return kib >> 10;
  }
  return 0;
}

// A pattern of a prime period, so that an element that strays is seen.
std::uint8_t value_at(std::size_t index, int rank) {
  return static_cast<std::uint8_t>(index % 61 + static_cast<std::size_t>(rank));
}

using Values = std::vector<std::uint8_t>;

void fill(Values& values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_at(i, rank);
}

void expect_sum(const core::Result<Handle>& handle, const Values& values) {
  ASSERT_TRUE(handle) << handle.error().message;
  ASSERT_TRUE(handle->wait_for(kLimit));
  const core::Status status = handle->wait();
  ASSERT_TRUE(status) << status.error().message;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int expected = value_at(i, 0) + value_at(i, 1);
    wrong += values[i] == static_cast<std::uint8_t>(expected) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0U);
}

void reduce_by_name(Engine& engine, Values& values) {
  Submission submission;
  submission.request.name = "large";
  submission.request.type = core::DataType::kUint8;
  submission.request.shape = {static_cast<std::int64_t>(values.size())};
  submission.input = submission.output = values.data();
  expect_sum(engine.submit(std::move(submission)), values);
}

void reduce_in_order(Engine& engine, Values& values) {
  OrderedOperation operation;
  operation.type = core::DataType::kUint8;
  operation.output = std::as_writable_bytes(std::span(values));
  operation.input = operation.output;
  expect_sum(engine.submit_ordered(std::move(operation)), values);
}

TEST(MoreThan31Bits, OfElementsAreReducedThroughEitherDoor) {
  const std::uint64_t available = available_mib();
  if (available < kNeededMiB) {
    GTEST_SKIP() << "needs " << kNeededMiB << " MiB of memory, but " << available
                 << " MiB are available";
  }
  run_as_threads(2, [](Engine& engine) {
    Values values(kElements);
    fill(values, engine.world().rank);
    reduce_by_name(engine, values);
    fill(values, engine.world().rank);
    reduce_in_order(engine, values);
  });
}

}  // namespace
}  // namespace fasthorovod::ops::testing
