#include "core/stall_monitor.h"

#include <fmt/format.h>

#include <map>

#include "core/agreement.h"

namespace fasthorovod::core {

namespace {

// Thousands of tensors stall together when one rank hangs; the first few show which part of the
// program it is.
constexpr std::size_t kNamesInAWarning = 6;

std::string warning_about(const std::vector<int>& missing, const std::vector<const Waiting*>& waits,
                          TimePoint now) {
  std::string names;
  for (std::size_t i = 0; i < waits.size() && i < kNamesInAWarning; ++i) {
    names += fmt::format("{}\"{}\" ({})", i == 0 ? "" : ", ", waits[i]->name,
                         describe_seconds(now - waits[i]->state->since));
  }
  if (waits.size() > kNamesInAWarning) {
    names += fmt::format(" and {} more", waits.size() - kNamesInAWarning);
  }
  return fmt::format("{} did not submit what other ranks wait for: {}", describe_ranks(missing),
                     names);
}

}  // namespace

std::string describe_seconds(Duration duration) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

void StallMonitor::schedule(const StallState& state) {
  const auto earlier = [this](TimePoint due) {
    if (!next_check_ || due < *next_check_) next_check_ = due;
  };
  if (warning_ > Duration::zero()) earlier(state.since + state.warn_after);
  if (limit_ > Duration::zero()) earlier(state.since + limit_);
}

StallState StallMonitor::begin(TimePoint since) {
  const StallState state{since, warning_};
  schedule(state);
  return state;
}

StallMonitor::Report StallMonitor::check(const std::vector<Waiting>& waiting, TimePoint now) {
  Report report;
  next_check_.reset();
  std::map<std::vector<int>, std::vector<const Waiting*>> warned;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    StallState& state = *waiting[i].state;
    const Duration waited = now - state.since;
    if (limit_ > Duration::zero() && waited >= limit_) {
      report.expired.push_back(i);
      continue;
    }
    if (warning_ > Duration::zero() && waited >= state.warn_after) {
      warned[waiting[i].missing].push_back(&waiting[i]);
      while (state.warn_after <= waited) state.warn_after *= 2;
    }
    schedule(state);
  }
  for (const auto& [missing, waits] : warned) {
    report.warnings.push_back(warning_about(missing, waits, now));
  }
  return report;
}

}  // namespace fasthorovod::core
