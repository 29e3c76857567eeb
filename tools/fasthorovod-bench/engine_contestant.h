// FastHorovod itself, through the public engine.
#pragma once

#include <cstddef>
#include <vector>

#include "core/codec_choice.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/choices.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {

class EngineContestant final : public Contestant {
 public:
  /// The engine outlives this. A codec goes with the named door, float32, sums and averages.
  EngineContestant(ops::Engine& engine, BenchDoor door, const core::CodecChoice& codec)
      : engine_(engine), door_(door), codec_(codec) {}

  [[nodiscard]] std::string_view name() const override { return "fasthorovod"; }
  core::Result<std::vector<Sample>> take(const Turn& turn) override;

 private:
  core::Status run_named(const Turn& turn);
  core::Status run_ordered(const Turn& turn);
  core::Status allreduce(const Turn& turn);
  [[nodiscard]] Pattern own(const Turn& turn) const;
  [[nodiscard]] Pattern expected(const Turn& turn) const;

  ops::Engine& engine_;
  const BenchDoor door_;
  const core::CodecChoice codec_;
  std::vector<std::byte> values_;
};

}  // namespace fasthorovod::tools
