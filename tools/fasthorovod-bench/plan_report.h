// Prints the facts of a plan. Rank 0 only. Thread: owner.
#pragma once

#include "tools/fasthorovod-bench/plan_facts.h"

namespace fasthorovod::tools {

/// Tables, or one JSON object, to standard output.
void print_plan(const PlanFacts& facts, bool json);

}  // namespace fasthorovod::tools
