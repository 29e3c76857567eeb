// FastHorovod's engine in training steps, through the named door as fasthorovod.torch uses it, with
// settings of its own: each turn is a world of its own, so that several settings can take turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/step_contestant.h"

namespace fasthorovod::tools {

/// Numbers worlds of one program, alike on all ranks.
class Epochs final {
 public:
  std::uint32_t next() { return next_++; }

 private:
  std::uint32_t next_ = 0;
};

class EngineSteps final : public StepContestant {
 public:
  /// The gradients, the epochs and the log outlive this.
  EngineSteps(std::string name, core::Config config, const std::vector<Gradient>& gradients,
              Epochs& epochs, core::Log& log);

  [[nodiscard]] std::string_view name() const override { return name_; }
  core::Result<std::vector<Sample>> take(const StepTurn& turn) override;

 private:
  core::Result<double> step(ops::Engine& engine, const StepTurn& turn);
  core::Result<ops::Handle> submit(ops::Engine& engine, std::size_t gradient);

  const std::string name_;
  const core::Config config_;
  const std::vector<Gradient>& gradients_;
  Epochs& epochs_;
  core::Log& log_;
  std::vector<std::byte> values_;                // of all gradients, one after the other
  std::vector<std::span<std::byte>> tensors_{};  // parts of it
};

}  // namespace fasthorovod::tools
