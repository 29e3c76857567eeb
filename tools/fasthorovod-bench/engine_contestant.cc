#include "tools/fasthorovod-bench/engine_contestant.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.h"
#include "tools/fasthorovod-bench/codec_pattern.h"
#include "tools/fasthorovod-bench/exchange.h"

namespace fasthorovod::tools {
namespace {

constexpr std::size_t kTime = 0;
constexpr std::size_t kWrong = 1;

/// `all` holds time and errors of each rank.
Sample merge(const std::vector<double>& all) {
  Sample sample;
  for (std::size_t at = 0; at < all.size(); at += 2) {
    sample.microseconds = std::max(sample.microseconds, all[at + kTime]);
    sample.wrong += static_cast<std::uint64_t>(all[at + kWrong]);
  }
  return sample;
}

}  // namespace

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
  values_.resize(turn.count * core::size_of(turn.type));
  std::vector<Sample> samples;
  std::vector<double> last{0, 0};
  // One more round than there are iterations: the exchange of the last.
  for (int i = -turn.warm_up; i <= turn.iterations; ++i) {
    if (i < turn.iterations) fill(values_, own_values);
    core::Result<std::vector<double>> all = exchange_numbers(engine_, last);
    if (!all) return std::move(all).error();
    if (i > 0) samples.push_back(merge(*all));
    if (i == turn.iterations) break;
    const core::TimePoint start = core::Clock::now();
    if (core::Status status = allreduce(turn); !status) return std::move(status).error();
    const std::chrono::duration<double, std::micro> took = core::Clock::now() - start;
    // What was wrong in the warm-up is kept until a sample takes it along.
    const double before = i > 0 ? 0 : last[kWrong];
    last = {took.count(), before + static_cast<double>(count_wrong(values_, right_values))};
  }
  return samples;
}

}  // namespace fasthorovod::tools
