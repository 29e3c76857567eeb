#include "core/flow_count.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

namespace fasthorovod::core {
namespace {

constexpr std::size_t kSamples = 9;     // whose median counts
constexpr double kClearlyMore = 0.08;   // a gain; or of what flows could gain that are all limited
constexpr double kGainShare = 0.4;      // by themselves, so much
constexpr double kAsMuch = 0.97;        // of the settled number
constexpr double kAsMuchOfBest = 0.95;  // so that small losses do not add up
constexpr std::size_t kFewSamples = 3;
constexpr double kClearlyLess = 0.92;  // with fewer flows few samples will do then
constexpr double kFarLess = 0.85;      // or one
constexpr double kChange = 0.1;
constexpr auto kPause = std::chrono::seconds(10);  // before fewer are tried
constexpr auto kEra = std::chrono::seconds(30);

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void FlowCount::learn(TimePoint now, double goodput, int most) {
  if (trial_ > most) {  // flows have ended
    settled_ = std::min(settled_, most);
    use(settled_, Phase::kMeasure);
  }
  if (skips_) {
    skips_ = false;
    return;
  }
  samples_.push_back(goodput);
  switch (phase_) {
    case Phase::kMeasure:
      return measure(now, most);
    case Phase::kTry:
      return judge(now, goodput, most);
    case Phase::kRest:
      return rest(now, most);
  }
}

void FlowCount::measure(TimePoint now, int most) {
  if (samples_.size() < kSamples) return;
  base_ = median(samples_);
  begin_era(now);
  choose(now, most);
}

void FlowCount::judge(TimePoint now, double goodput, int most) {
  const double carried = median(samples_);
  const bool fails = trial_ < settled_ && is_clearly_less(goodput, carried);
  if (!fails && samples_.size() < kSamples) return;
  remember(trial_, carried);
  const double could_gain = static_cast<double>(trial_ - settled_) / settled_;
  const double gain = std::min(kClearlyMore, kGainShare * could_gain);
  const bool keeps = trial_ > settled_
                         ? carried > (1 + gain) * base_
                         : carried >= kAsMuch * base_ && carried >= kAsMuchOfBest * best();
  if (keeps && !fails) {
    settled_ = trial_;
    base_ = carried;
  }
  choose(now, most);
}

// Each sample of a number that is too small costs goodput.
bool FlowCount::is_clearly_less(double last, double carried) const {
  if (samples_.size() < kFewSamples) return last < kFarLess * base_;
  return carried < kClearlyLess * base_;
}

void FlowCount::rest(TimePoint now, int most) {
  if (samples_.size() > kSamples) samples_.erase(samples_.begin());
  if (samples_.size() < kSamples) return;
  const double carried = median(samples_);
  if (std::abs(carried - base_) > kChange * base_) {
    base_ = carried;
    begin_era(now);
    return choose(now, most);
  }
  if (now >= era_ends_) return use(settled_, Phase::kMeasure);
  if (now < fewer_from_ || !fewer()) return;
  base_ = carried;
  remember(settled_, base_);
  choose(now, most);
}

void FlowCount::begin_era(TimePoint now) {
  experience_.clear();
  remember(settled_, base_);
  era_ends_ = now + kEra;
  fewer_from_ = now + kPause;
}

void FlowCount::choose(TimePoint now, int most) {
  if (const auto flows = more(most)) return use(*flows, Phase::kTry);
  if (const auto flows = fewer(); flows && now >= fewer_from_) return use(*flows, Phase::kTry);
  use(settled_, Phase::kRest);
}

void FlowCount::use(int flows, Phase phase) {
  skips_ = flows > trial_;
  trial_ = flows;
  phase_ = phase;
  samples_.clear();
}

void FlowCount::remember(int flows, double goodput) {
  const auto place = std::ranges::lower_bound(experience_, flows, {}, &Experience::flows);
  if (place != experience_.end() && place->flows == flows) {
    place->goodput = goodput;
  } else {
    experience_.insert(place, {flows, goodput});
  }
}

bool FlowCount::knows(int flows) const {
  return std::ranges::binary_search(experience_, flows, {}, &Experience::flows);
}

double FlowCount::best() const {
  return std::ranges::max_element(experience_, {}, &Experience::goodput)->goodput;
}

std::optional<int> FlowCount::more(int most) const {
  const int step = std::max(1, settled_ / 4);
  for (const int added : {step, 2 * step}) {
    const int flows = std::min(settled_ + added, most);
    if (flows > settled_ && !knows(flows)) return flows;
  }
  return std::nullopt;
}

std::optional<int> FlowCount::fewer() const {
  const int flows = settled_ - std::max(1, settled_ / 8);
  if (flows < 1 || knows(flows)) return std::nullopt;
  return flows;
}

}  // namespace fasthorovod::core
