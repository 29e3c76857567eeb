#include "tools/fasthorovod-bench/back_to_back_run.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tools/fasthorovod-bench/back_to_back.h"
#include "tools/fasthorovod-bench/exchange.h"
#include "tools/fasthorovod-bench/report.h"

namespace fasthorovod::tools {
namespace {

class EngineRank final : public BackToBackRank {
 public:
  EngineRank(ops::Engine& engine, EngineContestant& ours, const Turn& turn)
      : engine_(engine), ours_(ours), turn_(turn) {}

  core::Status allreduce() override { return ours_.allreduce(turn_); }

  core::Result<std::vector<double>> exchange(const std::vector<double>& own) override {
    return exchange_numbers(engine_, own);
  }

 private:
  ops::Engine& engine_;
  EngineContestant& ours_;
  const Turn& turn_;
};

Row row_of(std::uint64_t count, std::string_view name, const Timing& timing) {
  const auto [least, most] =
      std::minmax_element(timing.iterations_us.begin(), timing.iterations_us.end());
  return {
      .count = count,
      .contestant = name,
      .summary = {.median_us = median(timing.iterations_us),
                  .least_us = *least,
                  .wrong = timing.wrong},
      .back_to_back = BackToBackFigures{
          .most_us = *most, .cpu_us = timing.cpu_us, .iterations = timing.iterations_us.size()}};
}

class Run {
 public:
  /// `report` is null on all ranks but the first.
  Run(ops::Engine& engine, EngineContestant& ours, const AllreduceOptions& options, Report* report)
      : engine_(engine), ours_(ours), options_(options), report_(report) {}

  core::Result<std::uint64_t> size(std::uint64_t count) {
    const Turn turn{.count = count, .type = options_.type, .reduction = options_.reduction};
    const Pattern own = ours_.own(turn);
    const Pattern expected = ours_.expected(turn);
    core::Result<std::span<std::byte>> room = ours_.make_room(turn);
    if (!room) return std::move(room).error();
    const Task task{*room, own, expected};
    const Pace pace{options_.iterations, options_.budget_s, options_.warm_up};
    EngineRank rank(engine_, ours_, turn);
    std::size_t number = 0;
    const auto trace = [&](double microseconds) {
      if (report_ != nullptr) report_->trace(count, ours_.name(), number++, {{microseconds, 0}});
    };
    core::Result<Timing> timing = time_back_to_back(rank, task, pace, trace);
    if (!timing) return std::move(timing).error();
    if (report_ != nullptr) report_->row(row_of(count, ours_.name(), *timing));
    return timing->wrong;
  }

 private:
  ops::Engine& engine_;
  EngineContestant& ours_;
  const AllreduceOptions& options_;
  Report* const report_;
};

}  // namespace

core::Result<std::uint64_t> run_back_to_back(ops::Engine& engine, EngineContestant& ours,
                                             const AllreduceOptions& options) {
  const core::World& world = engine.world();
  core::Status exact = check_exact(options.type, options.reduction, world.size);
  if (!exact) return std::move(exact).error();
  std::unique_ptr<Report> report;
  if (world.rank == 0) {
    auto opened = Report::open(world, {ours.name()}, options);
    if (!opened) return std::move(opened).error();
    report = *std::move(opened);
    report->heading();
  }
  Run run(engine, ours, options, report.get());
  std::uint64_t wrong = 0;
  for (const std::uint64_t count : options.counts) {
    core::Result<std::uint64_t> more = run.size(count);
    if (!more) return more;
    wrong += *more;
  }
  if (report != nullptr) report->closing();
  return wrong;
}

}  // namespace fasthorovod::tools
