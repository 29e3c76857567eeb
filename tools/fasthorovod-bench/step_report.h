// What `fasthorovod-bench step` prints: a table or JSON lines. Rank 0 only. Thread: owner.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/world.h"
#include "tools/fasthorovod-bench/step.h"
#include "tools/fasthorovod-bench/summary.h"

namespace fasthorovod::tools {

/// One contestant with one computation.
struct StepRow {
  double compute_us = 0;
  std::string_view contestant;
  Summary summary;
  std::optional<double> speedup{};  // this one's time by ours
};

class StepReport final {
 public:
  /// World, options and gradients outlive this.
  StepReport(const core::World& world, const StepOptions& options,
             const std::vector<Gradient>& gradients);

  void heading() const;
  void row(const StepRow& row) const;

 private:
  const core::World& world_;
  const StepOptions& options_;
  const std::vector<Gradient>& gradients_;
};

}  // namespace fasthorovod::tools
