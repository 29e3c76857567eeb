#include "tools/fasthorovod-bench/step.h"

#include <cstddef>
#include <utility>

#include "tools/fasthorovod-bench/step_report.h"
#include "tools/fasthorovod-bench/summary.h"

namespace fasthorovod::tools {
namespace {

// The search for a computation stops well before that.
constexpr int kSearchTurns = 4;

class Replay {
 public:
  /// `report` is null on all ranks but the first.
  Replay(std::span<StepContestant* const> contestants, const StepOptions& options,
         const StepReport* report)
      : contestants_(contestants), options_(options), report_(report) {}

  /// How many values were wrong.
  core::Result<std::uint64_t> run(double compute_us) {
    std::vector<Repetitions> results(contestants_.size());
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      for (std::size_t at = 0; at < contestants_.size(); ++at) {
        core::Result<std::vector<Sample>> samples = contestants_[at]->take(turn(compute_us));
        if (!samples) return std::move(samples).error();
        results[at].push_back(*std::move(samples));
      }
    }
    return tell(compute_us, results);
  }

  /// With a computation c a step takes some t(c), which grows more slowly than c, so c = (1 - e)
  /// t(c) is reached by putting in what comes out.
  core::Result<double> search(double exposed) {
    double compute_us = 0;
    for (int i = 0; i < kSearchTurns; ++i) {
      core::Result<std::vector<Sample>> samples = contestants_.back()->take(turn(compute_us));
      if (!samples) return std::move(samples).error();
      compute_us = (1 - exposed) * summarize({*samples}).median_us;
    }
    return compute_us;
  }

 private:
  [[nodiscard]] StepTurn turn(double compute_us) const {
    return {.compute_us = compute_us, .warm_up = options_.warm_up, .steps = options_.steps};
  }

  std::uint64_t tell(double compute_us, const std::vector<Repetitions>& results) const {
    std::uint64_t wrong = 0;
    for (std::size_t at = 0; at < results.size(); ++at) {
      StepRow row{.compute_us = compute_us,
                  .contestant = contestants_[at]->name(),
                  .summary = summarize(results[at])};
      if (at > 0) row.speedup = ratio(results[at], results.front());
      wrong += row.summary.wrong;
      if (report_ != nullptr) report_->row(row);
    }
    return wrong;
  }

  const std::span<StepContestant* const> contestants_;
  const StepOptions& options_;
  const StepReport* const report_;
};

}  // namespace

core::Result<std::uint64_t> run_steps(const core::World& world,
                                      std::span<StepContestant* const> contestants,
                                      const StepOptions& options,
                                      const std::vector<Gradient>& gradients) {
  const StepReport report(world, options, gradients);
  const bool tells = world.rank == 0;
  Replay replay(contestants, options, tells ? &report : nullptr);
  if (tells) report.heading();
  std::vector<double> computations;
  computations.reserve(options.compute_ms.size());
  for (const double ms : options.compute_ms) computations.push_back(ms * 1000);
  if (options.exposed) {
    core::Result<double> found = replay.search(*options.exposed);
    if (!found) return std::move(found).error();
    computations = {*found};
  }
  std::uint64_t wrong = 0;
  for (const double compute_us : computations) {
    core::Result<std::uint64_t> more = replay.run(compute_us);
    if (!more) return more;
    wrong += *more;
  }
  return wrong;
}

}  // namespace fasthorovod::tools
