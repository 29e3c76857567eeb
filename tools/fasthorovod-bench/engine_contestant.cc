#include "tools/fasthorovod-bench/engine_contestant.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/clock.h"
#include "tools/fasthorovod-bench/codec_pattern.h"
#include "tools/fasthorovod-bench/lineup.h"

namespace fasthorovod::tools {

core::Status EngineContestant::run_named(const Turn& turn) {
  ops::Submission submission;
  submission.request.name = fmt::format("{} {} of {}", core::to_string(turn.reduction),
                                        core::to_string(turn.type), turn.count);
  submission.request.type = turn.type;
  submission.request.reduction = turn.reduction;
  submission.request.codec = codec_;
  submission.request.shape = {static_cast<std::int64_t>(turn.count)};
  submission.input = values_.data();
  submission.output = values_.data();
  const core::Result<ops::Handle> handle = engine_.submit(std::move(submission));
  return handle ? handle->wait() : handle.error();
}

core::Status EngineContestant::run_ordered(const Turn& turn) {
  ops::OrderedOperation operation;
  operation.type = turn.type;
  operation.reduction = turn.reduction;
  operation.input = values_;
  operation.output = values_;
  return engine_.run(std::move(operation));
}

core::Result<std::span<std::byte>> EngineContestant::make_room(const Turn& turn) {
  const std::size_t bytes = turn.count * core::size_of(turn.type);
  if (bytes == values_.size()) return values_;
  if (memory_ == BenchMemory::kOrdinary) {
    ordinary_.resize(bytes);
    return values_ = ordinary_;
  }
  values_ = {};
  shared_.reset();
  auto shared = engine_.shared_memory(bytes);
  if (!shared) return std::move(shared).error();
  shared_ = *std::move(shared);
  return values_ = {shared_.get(), bytes};
}

core::Status EngineContestant::allreduce(const Turn& turn) {
  return door_ == BenchDoor::kNamed ? run_named(turn) : run_ordered(turn);
}

Pattern EngineContestant::own(const Turn& turn) const {
  const int rank = engine_.world().rank;
  if (codec_.encodes()) return coded_contribution(codec_, rank);
  return contribution(turn.type, turn.reduction, rank);
}

Pattern EngineContestant::expected(const Turn& turn) const {
  const int size = engine_.world().size;
  if (codec_.encodes()) return coded_result(codec_, turn.reduction, size);
  return expected_result(turn.type, turn.reduction, size);
}

core::Result<std::vector<Sample>> EngineContestant::take(const Turn& turn) {
  const Pattern own_values = own(turn);
  const Pattern right_values = expected(turn);
  if (auto room = make_room(turn); !room) return std::move(room).error();
  Lineup lineup(engine_);
  for (int i = -turn.warm_up; i < turn.iterations; ++i) {
    fill(values_, own_values);
    if (core::Status met = lineup.meet(); !met) return std::move(met).error();
    const core::TimePoint start = core::Clock::now();
    if (core::Status status = allreduce(turn); !status) return std::move(status).error();
    const std::chrono::duration<double, std::micro> took = core::Clock::now() - start;
    lineup.add(took.count(), count_wrong(values_, right_values), i >= 0);
  }
  // That of the last iteration.
  if (core::Status met = lineup.meet(); !met) return std::move(met).error();
  return lineup.samples();
}

}  // namespace fasthorovod::tools
