#include "tools/fasthorovod-bench/back_to_back.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/clock.h"
#include "tools/fasthorovod-bench/processor_time.h"

namespace fasthorovod::tools {
namespace {

constexpr int kLeastIterations = 2;
constexpr int kMostIterations = 2000;
constexpr double kWarmUpShare = 0.1;  // of the budget
constexpr int kMostWarmUp = 64;       // iterations of a batch
constexpr double kMicrosecondsOfASecond = 1e6;

double seconds_since(core::TimePoint start) {
  return std::chrono::duration<double>(core::Clock::now() - start).count();
}

class Loop {
 public:
  Loop(BackToBackRank& rank, const Task& task) : rank_(rank), task_(task) {}

  /// How many values of this rank were wrong.
  core::Result<std::uint64_t> check() {
    fill(task_.values, task_.own);
    const core::TimePoint start = core::Clock::now();
    if (core::Status done = rank_.allreduce(); !done) return std::move(done).error();
    checked_s_ = seconds_since(start);
    const std::uint64_t wrong = count_wrong(task_.values, task_.expected);
    // Sums of zeros stay zeros, however often they are added up.
    std::memset(task_.values.data(), 0, task_.values.size());
    return wrong;
  }

  /// Batches that grow until one takes its share of the budget; none where the check took all of
  /// it. How long an iteration takes; the same on every rank.
  core::Result<double> warm_up(const Pace& pace) {
    core::Result<double> checked = slowest_of_ranks(checked_s_);
    if (!checked || (pace.budget_s > 0 && *checked >= pace.budget_s)) return checked;
    for (int batch = std::max(pace.warm_up, 1);; batch *= 4) {
      const core::TimePoint start = core::Clock::now();
      for (int i = 0; i < batch; ++i) {
        if (core::Status done = rank_.allreduce(); !done) return std::move(done).error();
      }
      core::Result<double> took = slowest_of_ranks(seconds_since(start));
      if (!took) return took;
      if (*took >= kWarmUpShare * pace.budget_s || batch >= kMostWarmUp) return *took / batch;
    }
  }

  core::Status run(int iterations, const OnIteration& on_iteration, Timing& timing) {
    for (int i = 0; i < iterations; ++i) {
      const core::TimePoint start = core::Clock::now();
      if (core::Status done = rank_.allreduce(); !done) return done;
      timing.iterations_us.push_back(seconds_since(start) * kMicrosecondsOfASecond);
      if (on_iteration) on_iteration(timing.iterations_us.back());
    }
    return {};
  }

 private:
  core::Result<double> slowest_of_ranks(double seconds) {
    core::Result<std::vector<double>> all = rank_.exchange({seconds});
    if (!all) return std::move(all).error();
    return *std::max_element(all->begin(), all->end());
  }

  BackToBackRank& rank_;
  const Task& task_;
  double checked_s_ = 0;  // how long the all-reduce of the last check took
};

/// Adds up what every rank found.
core::Status sum_up(BackToBackRank& rank, double cpu_s, std::uint64_t wrong, Timing& timing) {
  core::Result<std::vector<double>> all = rank.exchange({cpu_s, static_cast<double>(wrong)});
  if (!all) return std::move(all).error();
  const double iterations = static_cast<double>(timing.iterations_us.size());
  for (std::size_t at = 0; at + 1 < all->size(); at += 2) {
    timing.cpu_us += (*all)[at] * kMicrosecondsOfASecond / iterations;
    timing.wrong += static_cast<std::uint64_t>((*all)[at + 1]);
  }
  return {};
}

}  // namespace

int iterations_of(const Pace& pace, double iteration_s) {
  if (pace.budget_s <= 0) return pace.iterations;
  const double fit = pace.budget_s / std::max(iteration_s, 1e-9);
  return static_cast<int>(std::clamp<double>(std::floor(fit), kLeastIterations, kMostIterations));
}

core::Result<Timing> time_back_to_back(BackToBackRank& rank, const Task& task, const Pace& pace,
                                       const OnIteration& on_iteration) {
  Loop loop(rank, task);
  core::Result<std::uint64_t> first_wrong = loop.check();
  if (!first_wrong) return std::move(first_wrong).error();
  ProcessorTime cpu;
  core::Result<double> iteration_s = loop.warm_up(pace);
  if (!iteration_s) return std::move(iteration_s).error();
  Timing timing;
  cpu.restart();
  core::Status ran = loop.run(iterations_of(pace, *iteration_s), on_iteration, timing);
  if (!ran) return std::move(ran).error();
  const double cpu_s = cpu.seconds();
  core::Result<std::uint64_t> last_wrong = loop.check();
  if (!last_wrong) return std::move(last_wrong).error();
  core::Status summed = sum_up(rank, cpu_s, *first_wrong + *last_wrong, timing);
  if (!summed) return std::move(summed).error();
  return timing;
}

}  // namespace fasthorovod::tools
