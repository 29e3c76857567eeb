// FastHorovod itself, through the public engine.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/engine.h"
#include "tools/fasthorovod-bench/choices.h"
#include "tools/fasthorovod-bench/contestant.h"

namespace fasthorovod::tools {

class EngineContestant final : public Contestant {
 public:
  /// The engine outlives this.
  EngineContestant(ops::Engine& engine, BenchDoor door) : engine_(engine), door_(door) {}

  [[nodiscard]] std::string_view name() const override { return "fasthorovod"; }
  core::Result<std::vector<Sample>> take(const Turn& turn) override;

 private:
  core::Result<ops::Handle> submit(const Turn& turn);
  core::Status allreduce(const Turn& turn);

  ops::Engine& engine_;
  const BenchDoor door_;
  std::vector<std::byte> values_;
};

}  // namespace fasthorovod::tools
