// FastHorovod itself, through the public engine.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/codec_choice.h"
#include "ops/engine.h"
#include "tools/fasthorovod-bench/allreduce.h"
#include "tools/fasthorovod-bench/choices.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {

class EngineContestant final : public Contestant {
 public:
  /// The engine outlives this. Of the options door, codec and memory count. A codec goes with the
  /// named door, float32, sums and averages.
  EngineContestant(ops::Engine& engine, const AllreduceOptions& options)
      : engine_(engine), door_(options.door), codec_(options.codec), memory_(options.memory) {}

  [[nodiscard]] std::string_view name() const override { return "fasthorovod"; }
  core::Result<std::vector<Sample>> take(const Turn& turn) override;

  /// The buffer of a turn, which stays until the next call. kUnavailable: the arena has no room.
  core::Result<std::span<std::byte>> make_room(const Turn& turn);
  /// Of that buffer, in place.
  core::Status allreduce(const Turn& turn);
  /// What this rank puts in, and what must come out.
  [[nodiscard]] Pattern own(const Turn& turn) const;
  [[nodiscard]] Pattern expected(const Turn& turn) const;

 private:
  core::Status run_named(const Turn& turn);
  core::Status run_ordered(const Turn& turn);

  ops::Engine& engine_;
  const BenchDoor door_;
  const core::CodecChoice codec_;
  const BenchMemory memory_;
  std::vector<std::byte> ordinary_;
  std::shared_ptr<std::byte> shared_;  // owner: this; the engine borrows it
  std::span<std::byte> values_;        // in one of them
};

}  // namespace fasthorovod::tools
