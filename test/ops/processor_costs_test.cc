#include "ops/processor_costs.h"

#include <gtest/gtest.h>

namespace fasthorovod::ops {
namespace {

TEST(ProcessorCosts, AreThoseOfSomeProcessor) {
  const core::ProcessorCosts costs = measure_processor_costs();
  EXPECT_GT(costs.copied_seconds, 0);
  EXPECT_GT(costs.reduced_seconds, 0);
}

}  // namespace
}  // namespace fasthorovod::ops
