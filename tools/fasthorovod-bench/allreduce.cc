#include "tools/fasthorovod-bench/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "core/clock.h"
#include "tools/fasthorovod-bench/sizes.h"

namespace fasthorovod::tools {
namespace {

struct Row {
  std::uint64_t bytes = 0;
  double median_us = 0;
  double least_us = 0;
  std::uint64_t wrong = 0;
};

core::Status allreduce(ops::Engine& engine, const std::string& name, std::vector<float>& values) {
  ops::Submission submission;
  submission.request.name = name;
  submission.request.type = core::DataType::kFloat32;
  submission.request.reduction = core::Reduction::kSum;
  submission.request.shape = {static_cast<std::int64_t>(values.size())};
  submission.input = values.data();
  submission.output = values.data();
  core::Result<ops::Handle> handle = engine.submit(std::move(submission));
  if (!handle) return std::move(handle).error();
  return handle->wait();
}

// Small integers, so that the sum is exact in any order and differs from rank to rank and place to
// place.
constexpr std::size_t kPeriod = 7;
using Pattern = std::array<float, kPeriod>;

Pattern own_pattern(int rank) {
  Pattern pattern{};
  for (std::size_t i = 0; i < kPeriod; ++i)
    pattern[i] = static_cast<float>(rank + 1) + static_cast<float>(i);
  return pattern;
}

Pattern sum_of_patterns(int size) {
  Pattern sum{};
  for (int rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < kPeriod; ++i) sum[i] += own_pattern(rank)[i];
  }
  return sum;
}

void fill(std::vector<float>& values, const Pattern& pattern) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = pattern[i % kPeriod];
}

std::uint64_t count_wrong(const std::vector<float>& values, const Pattern& expected) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    wrong += values[i] != expected[i % kPeriod] ? 1 : 0;
  return wrong;
}

core::Result<Row> measure(ops::Engine& engine, std::uint64_t bytes,
                          const AllreduceOptions& options) {
  const core::World& world = engine.world();
  std::vector<float> values(bytes / sizeof(float));
  const std::string name = fmt::format("bench.{}", bytes);
  Row row{.bytes = values.size() * sizeof(float)};
  const Pattern own = own_pattern(world.rank);
  const Pattern expected = sum_of_patterns(world.size);
  std::vector<double> times;
  for (int i = -options.warm_up; i < options.iterations; ++i) {
    fill(values, own);
    const core::TimePoint start = core::Clock::now();
    if (core::Status status = allreduce(engine, name, values); !status)
      return std::move(status).error();
    const std::chrono::duration<double, std::micro> took = core::Clock::now() - start;
    if (i >= 0) times.push_back(took.count());
    row.wrong += count_wrong(values, expected);
  }
  std::sort(times.begin(), times.end());
  row.median_us = times[times.size() / 2];
  row.least_us = times.front();
  return row;
}

void print_json(const Row& row, double algbw, double busbw) {
  const nlohmann::ordered_json line = {
      {"bytes", row.bytes},       {"count", row.bytes / sizeof(float)},
      {"type", "float32"},        {"op", "sum"},
      {"time_us", row.median_us}, {"min_us", row.least_us},
      {"algbw", algbw},           {"busbw", busbw},
      {"wrong", row.wrong}};
  fmt::print("{}\n", line.dump());
}

void print(const Row& row, int size, bool json) {
  const double algbw = static_cast<double>(row.bytes) / row.median_us / 1e3;  // GB/s, GB = 1e9
  const double busbw = size == 1 ? algbw : algbw * 2.0 * (size - 1) / size;
  if (json) {
    print_json(row, algbw, busbw);
  } else {
    fmt::print("{:>10} {:>12} {:>8} {:>6} {:>12.1f} {:>12.1f} {:>9.3f} {:>9.3f} {:>7}\n",
               format_size(row.bytes), row.bytes / sizeof(float), "float32", "sum", row.median_us,
               row.least_us, algbw, busbw, row.wrong);
  }
  std::fflush(stdout);
}

void print_heading() {
  fmt::print("{:>10} {:>12} {:>8} {:>6} {:>12} {:>12} {:>9} {:>9} {:>7}\n", "size(B)", "count",
             "type", "redop", "median(us)", "least(us)", "algbw", "busbw", "#wrong");
}

}  // namespace

core::Result<std::uint64_t> run_allreduce(ops::Engine& engine, const AllreduceOptions& options) {
  const core::World& world = engine.world();
  const bool prints = world.rank == 0;
  if (prints && !options.json) print_heading();
  std::uint64_t wrong = 0;
  for (const std::uint64_t bytes : options.sizes) {
    core::Result<Row> row = measure(engine, bytes, options);
    if (!row) return std::move(row).error();
    wrong += row->wrong;
    if (prints) print(*row, world.size, options.json);
  }
  return wrong;
}

}  // namespace fasthorovod::tools
