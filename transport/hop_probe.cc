#include "transport/hop_probe.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "transport/member.h"

namespace fasthorovod::transport {
namespace {

constexpr std::uint32_t kLargeBytes = kMostPadding;
// Nobody can tell a faster network from none at all by so few bytes.
constexpr double kFastest = 12.5e9;

// Of this thread.
std::chrono::nanoseconds processor_time() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

double seconds(core::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

HopProbe::HopProbe(ControlLinks& links, std::span<const int> ranks)
    : links_(links), first_(ranks.front()), worked_(processor_time()) {
  links_.attach({.on_message = [this](int rank, auto message) { take(rank, message); },
                 .on_end = [this](int rank, core::Error error) { lose(rank, std::move(error)); }});
  for (const int rank : ranks) send(rank, 0);
}

HopProbe::~HopProbe() { links_.detach(); }

void HopProbe::lose(int rank, core::Error error) {
  error.culprit = rank;
  if (status_) {
    status_ = std::move(error).with_context(fmt::format("rank {} left during the start", rank));
  }
  over_ = true;
}

void HopProbe::send(int rank, std::uint32_t padding) {
  const auto message = encode(Probe{padding});
  Rank& probed = ranks_[rank];
  probed.waits = true;
  probed.sent = core::Clock::now();
  (void)links_.send(rank, message);
  handed_over_ = core::Clock::now() - probed.sent;
  if (padding == 0) ++messages_;
}

// Nobody has anything else to say now; what is said all the same is no answer.
void HopProbe::take(int rank, std::span<const std::byte> bytes) {
  const auto found = ranks_.find(rank);
  const auto message = decode_rendezvous(bytes);
  if (found == ranks_.end() || !message || !std::holds_alternative<Probe>(*message)) return;
  Rank& probed = found->second;
  if (!std::exchange(probed.waits, false)) return;
  if (large_) return take_large();
  ++messages_;
  probed.shortest = std::min<core::Duration>(probed.shortest, core::Clock::now() - probed.sent);
  if (++probed.answers < (late() ? kLeastRounds : kRounds)) return send(rank, 0);
  go_on();
}

// What the processors at both ends do with its bytes is no time on the wire: this end has been
// timed, and the other one does about the same.
void HopProbe::take_large() {
  const Rank& probed = ranks_[first_];
  const core::Duration whole = core::Clock::now() - probed.sent;
  on_the_wire_.push_back(whole - probed.shortest - 2 * handed_over_);
  go_on();
}

void HopProbe::go_on() {
  if (over_ || std::ranges::any_of(ranks_, [](const auto& each) { return each.second.waits; })) {
    return;
  }
  if (!std::exchange(large_, true)) worked_ = processor_time() - worked_;
  over_ = late() || large_left_ == 0;
  if (over_) return;
  --large_left_;
  send(first_, kLargeBytes);
}

core::Result<core::HopCosts> HopProbe::costs() const {
  if (!status_) return status_.error();
  core::HopCosts costs;
  for (const auto& [rank, probed] : ranks_) {
    if (probed.waits) {
      return core::Error{core::ErrorCode::kTimedOut,
                         fmt::format("rank {} did not answer during the start", rank), rank};
    }
    costs.hop_seconds = std::max(costs.hop_seconds, seconds(probed.shortest) / 2);
  }
  costs.message_seconds = seconds(worked_) / messages_;
  if (!on_the_wire_.empty()) {
    std::vector<core::Duration> sorted = on_the_wire_;
    std::ranges::sort(sorted);
    const double median = seconds(sorted[sorted.size() / 2]);
    costs.rate = kLargeBytes / std::max(median, kLargeBytes / kFastest);
  }
  return costs;
}

}  // namespace fasthorovod::transport
