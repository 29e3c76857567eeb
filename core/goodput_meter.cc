#include "core/goodput_meter.h"

#include <algorithm>
#include <chrono>

namespace fasthorovod::core {
namespace {

constexpr auto kBurst = std::chrono::milliseconds(4);
constexpr auto kLeast = std::chrono::milliseconds(16);  // of a window that ends for want of work
constexpr auto kLong = std::chrono::milliseconds(40);
constexpr auto kTooLong = std::chrono::milliseconds(200);  // though a flow hardly carries anything
constexpr int kLooks = 3;                                  // of each flow
constexpr int kDryOneIn = 5;                               // looks, at most

}  // namespace

void GoodputMeter::begin(std::size_t flows) {
  marks_.assign(flows, {});
  work_since_.reset();
  looks_ = 0;
  dry_looks_ = 0;
}

std::optional<double> GoodputMeter::look(std::size_t flow, TimePoint now, std::uint64_t drained,
                                         bool dry) {
  if (flow >= marks_.size()) return std::nullopt;
  if (!work_since_) work_since_ = now;
  if (now - *work_since_ < kBurst) return std::nullopt;
  if (looks_ == 0) window_since_ = now;
  ++looks_;
  if (dry) ++dry_looks_;
  Mark& mark = marks_[flow];
  if (mark.looks == 0) {
    mark.first_at = now;
    mark.first = drained;
  }
  ++mark.looks;
  mark.last_at = now;
  mark.last = drained;
  return is_complete(now) ? sample() : std::nullopt;
}

std::optional<double> GoodputMeter::rest(TimePoint now) {
  const Duration age = looks_ > 0 ? now - window_since_ : Duration::zero();
  const bool counts =
      age >= kLong || (age >= kLeast && std::ranges::all_of(marks_, [](const Mark& mark) {
                         return mark.looks > 1;
                       }));
  const std::optional<double> result = counts ? sample() : std::nullopt;
  begin(marks_.size());
  return result;
}

bool GoodputMeter::is_complete(TimePoint now) const {
  const Duration age = now - window_since_;
  if (age >= kTooLong) return true;
  return age >= kLong &&
         std::ranges::all_of(marks_, [](const Mark& mark) { return mark.looks >= kLooks; });
}

// Each flow's next interval begins where this one ends.
std::optional<double> GoodputMeter::sample() {
  waits_for_work_ = kDryOneIn * dry_looks_ > looks_;
  const double carried = sum();
  looks_ = 0;
  dry_looks_ = 0;
  for (Mark& mark : marks_) {
    if (mark.looks == 0) continue;
    mark.first_at = mark.last_at;
    mark.first = mark.last;
    mark.looks = 1;
  }
  if (waits_for_work_ || carried == 0) return std::nullopt;
  return carried;
}

double GoodputMeter::sum() const {
  double result = 0;
  for (const Mark& mark : marks_) {
    const double seconds = std::chrono::duration<double>(mark.last_at - mark.first_at).count();
    if (seconds > 0) result += static_cast<double>(mark.last - mark.first) / seconds;
  }
  return result;
}

}  // namespace fasthorovod::core
