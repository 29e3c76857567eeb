// Lines the ranks up before each iteration over the engine that is measured, and makes samples of
// what each of them measured: the slowest time, all errors.
//
// Thread: owner. All ranks call the same in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/contestant.h"

namespace fasthorovod::tools {

class Lineup final {
 public:
  /// The engine outlives this.
  explicit Lineup(ops::Engine& engine) : engine_(engine) {}

  /// Waits for all ranks, and tells them what add() was told last.
  core::Status meet();

  /// What this rank measured. When it is not `timed` (the warm-up) it makes no sample, but what was
  /// wrong goes along with the next one.
  void add(double microseconds, std::uint64_t wrong, bool timed);

  /// Of what was added before the last meet().
  [[nodiscard]] const std::vector<Sample>& samples() const { return samples_; }

 private:
  ops::Engine& engine_;
  Sample last_;
  bool timed_ = false;  // last_ makes a sample
  std::vector<Sample> samples_;
};

}  // namespace fasthorovod::tools
