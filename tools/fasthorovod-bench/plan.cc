#include "tools/fasthorovod-bench/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "tools/fasthorovod-bench/exchange.h"
#include "tools/fasthorovod-bench/plan_facts.h"
#include "tools/fasthorovod-bench/plan_report.h"
#include "tools/fasthorovod-bench/processor_time.h"

namespace fasthorovod::tools {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kShortIterations = 20;
constexpr std::size_t kShortSizes[] = {4 << 10, 64 << 10, 1 << 20};
constexpr std::size_t kLongSize = 16 << 20;
constexpr Seconds kLeastTime{1.5};  // before numbers of flows are believed
constexpr double kUsOfSecond = 1e6;

/// All-reduces of one size, lined up, as all ranks together saw them.
class Series final {
 public:
  Series(ops::Engine& engine, std::size_t bytes)
      : engine_(engine), values_(bytes), facts_{.bytes = bytes} {}

  /// One more. `done`: what this rank believes. True when all believe so.
  core::Result<bool> run(bool done) {
    const core::TimePoint start = core::Clock::now();
    processor_.restart();
    ops::OrderedOperation operation;
    operation.input = values_;
    operation.output = values_;
    operation.title = "calibration";
    core::Status ran = engine_.run(std::move(operation));
    if (!ran) return std::move(ran).error();
    const double used = processor_.seconds() * kUsOfSecond;
    const double took = Seconds(core::Clock::now() - start).count() * kUsOfSecond;
    const auto all = exchange_numbers(engine_, {took, used, done ? 1.0 : 0.0});
    if (!all) return all.error();
    return add(*all);
  }

  [[nodiscard]] TimeFacts facts() {
    const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
    std::ranges::nth_element(times_, middle);
    facts_.median_us = *middle;
    facts_.cpu_us = cpu_us_ / static_cast<double>(times_.size());
    return facts_;
  }

 private:
  bool add(const std::vector<double>& all) {
    double slowest = 0;
    bool all_done = true;
    for (std::size_t at = 0; at < all.size(); at += 3) {
      slowest = std::max(slowest, all[at]);
      cpu_us_ += all[at + 1];
      all_done = all_done && all[at + 2] > 0;
    }
    times_.push_back(slowest);
    return all_done;
  }

  ops::Engine& engine_;
  std::vector<std::byte> values_;
  ProcessorTime processor_;
  TimeFacts facts_;
  std::vector<double> times_;
  double cpu_us_ = 0;
};

core::Result<TimeFacts> run_short(ops::Engine& engine, std::size_t bytes) {
  Series series(engine, bytes);
  for (int i = 0; i < kShortIterations; ++i) {
    if (auto ran = series.run(false); !ran) return std::move(ran).error();
  }
  return series.facts();
}

/// Until the numbers of flows are found, or the time is over.
core::Result<TimeFacts> run_long(ops::Engine& engine, const PlanOptions& options) {
  Series series(engine, kLongSize);
  const core::TimePoint start = core::Clock::now();
  while (true) {
    const Seconds passed = core::Clock::now() - start;
    const bool done = passed.count() >= options.seconds ||
                      (passed >= kLeastTime && has_settled(engine.lane_report()));
    const auto all_done = series.run(done);
    if (!all_done) return all_done.error();
    if (*all_done) return series.facts();
  }
}

void say(const core::World& world, std::size_t bytes) {
  if (world.rank != 0) return;
  fmt::print(stderr, "fasthorovod-bench: calibrating, all-reduces of {} KiB\n", bytes >> 10);
  std::fflush(stderr);
}

core::Result<std::vector<TimeFacts>> calibrate(ops::Engine& engine, const PlanOptions& options) {
  std::vector<TimeFacts> times;
  for (const std::size_t bytes : kShortSizes) {
    say(engine.world(), bytes);
    auto facts = run_short(engine, bytes);
    if (!facts) return std::move(facts).error();
    times.push_back(*facts);
  }
  say(engine.world(), kLongSize);
  auto facts = run_long(engine, options);
  if (!facts) return std::move(facts).error();
  times.push_back(*facts);
  return times;
}

}  // namespace

core::Status run_plan(ops::Engine& engine, const core::Config& config, const PlanOptions& options) {
  auto times = calibrate(engine, options);
  if (!times) return std::move(times).error();
  auto facts = gather_plan(engine, config);
  if (!facts) return std::move(facts).error();
  facts->times = *std::move(times);
  if (engine.world().rank == 0) print_plan(*facts, options.json);
  return {};
}

}  // namespace fasthorovod::tools
