#include "test/ops/ordered_calls.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fasthorovod::ops::testing {

OrderedOperation call(OrderedKind kind, const Floats& input, Floats& output) {
  OrderedOperation operation;
  operation.kind = kind;
  operation.input = std::as_bytes(std::span(input));
  operation.output = std::as_writable_bytes(std::span(output));
  return operation;
}

LaneReport report_of_lanes(Engine& engine) {
  Floats values(1'000'000, 1.0F);
  expect_success(engine.submit(allreduce_of("all", values)));
  const LaneReport report = engine.lane_report();
  // Nobody leaves, and takes its flows away, before the other has its report.
  expect_success(engine.submit(allreduce_of("after", values)));
  return report;
}

Floats& none() {
  thread_local Floats nothing;
  return nothing;
}

void append(Floats& to, const Floats& values) { to.insert(to.end(), values.begin(), values.end()); }

Floats numbers_of(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) * 1000 + 17);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random) * std::exp(4 * normal(random));
  return values;
}

}  // namespace fasthorovod::ops::testing
