// torch's gloo in training steps: buckets as DistributedDataParallel makes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/fasthorovod-bench/gloo_contestant.h"
#include "tools/fasthorovod-bench/step_contestant.h"
#include "tools/fasthorovod-bench/worker_messages.h"

namespace fasthorovod::tools {

class GlooSteps final : public StepContestant {
 public:
  /// `gloo` has met; it and the gradients outlive this. `scale` divided the gradients.
  GlooSteps(GlooContestant& gloo, const std::vector<Gradient>& gradients, std::uint64_t scale)
      : gloo_(gloo), gradients_(gradients), scale_(scale) {}

  [[nodiscard]] std::string_view name() const override { return gloo_.name(); }
  core::Result<std::vector<Sample>> take(const StepTurn& turn) override {
    return gloo_.ask(worker_step(turn, gradients_, scale_, gloo_.rank(), gloo_.size()), turn.steps);
  }

 private:
  GlooContestant& gloo_;
  const std::vector<Gradient>& gradients_;
  const std::uint64_t scale_;
};

}  // namespace fasthorovod::tools
