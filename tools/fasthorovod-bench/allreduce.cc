#include "tools/fasthorovod-bench/allreduce.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/fasthorovod-bench/pattern.h"
#include "tools/fasthorovod-bench/report.h"
#include "tools/fasthorovod-bench/summary.h"

namespace fasthorovod::tools {
namespace {

class Match {
 public:
  /// `report` is null on all ranks but the first.
  Match(std::span<Contestant* const> contestants, const AllreduceOptions& options, Report* report)
      : contestants_(contestants), options_(options), report_(report) {}

  /// How many values were wrong.
  core::Result<std::uint64_t> run(std::uint64_t count) {
    std::vector<Repetitions> results(contestants_.size());
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      for (std::size_t at = 0; at < contestants_.size(); ++at) {
        if (core::Status status = take_turn(count, *contestants_[at], results[at]); !status) {
          return std::move(status).error();
        }
      }
    }
    return tell(count, results);
  }

 private:
  core::Status take_turn(std::uint64_t count, Contestant& contestant, Repetitions& so_far) {
    const Turn turn{.count = count,
                    .type = options_.type,
                    .reduction = options_.reduction,
                    .warm_up = options_.warm_up,
                    .iterations = options_.iterations};
    core::Result<std::vector<Sample>> samples = contestant.take(turn);
    if (!samples) return std::move(samples).error();
    if (report_ != nullptr) {
      const std::size_t first = so_far.size() * static_cast<std::size_t>(options_.iterations);
      report_->trace(count, contestant.name(), first, *samples);
    }
    so_far.push_back(*std::move(samples));
    return {};
  }

  std::uint64_t tell(std::uint64_t count, const std::vector<Repetitions>& results) {
    std::uint64_t wrong = 0;
    for (std::size_t at = 0; at < results.size(); ++at) {
      Row row{.count = count,
              .contestant = contestants_[at]->name(),
              .summary = summarize(results[at])};
      if (at > 0) row.ratio = ratio(results.front(), results[at]);
      wrong += row.summary.wrong;
      if (report_ != nullptr) report_->row(row);
    }
    return wrong;
  }

  const std::span<Contestant* const> contestants_;
  const AllreduceOptions& options_;
  Report* const report_;
};

core::Result<std::unique_ptr<Report>> open_report(const core::World& world,
                                                  std::span<Contestant* const> contestants,
                                                  const AllreduceOptions& options) {
  if (world.rank != 0) return std::unique_ptr<Report>();
  std::vector<std::string_view> names;
  for (const Contestant* contestant : contestants) names.push_back(contestant->name());
  return Report::open(world, std::move(names), options);
}

}  // namespace

core::Result<std::uint64_t> run_allreduce(const core::World& world,
                                          std::span<Contestant* const> contestants,
                                          const AllreduceOptions& options) {
  core::Status exact = check_exact(options.type, options.reduction, world.size);
  if (!exact) return std::move(exact).error();
  core::Result<std::unique_ptr<Report>> report = open_report(world, contestants, options);
  if (!report) return std::move(report).error();
  Match match(contestants, options, report->get());
  if (*report != nullptr) (*report)->heading();
  std::uint64_t wrong = 0;
  for (const std::uint64_t count : options.counts) {
    core::Result<std::uint64_t> more = match.run(count);
    if (!more) return more;
    wrong += *more;
  }
  if (*report != nullptr) (*report)->closing();
  return wrong;
}

}  // namespace fasthorovod::tools
