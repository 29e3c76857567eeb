#include "transport/hop_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/member.h"

namespace fasthorovod::transport {

HopProbe::HopProbe(ControlLinks& links, std::span<const int> ranks) : links_(links) {
  links_.attach({.on_message = [this](int rank, auto message) { take(rank, message); },
                 .on_end =
                     [this](int rank, core::Error error) {
                       error.culprit = rank;
                       if (status_) {
                         status_ = std::move(error).with_context(
                             fmt::format("rank {} left during the start", rank));
                       }
                       over_ = true;
                     }});
  for (const int rank : ranks) send(rank);
  look_whether_over();
}

HopProbe::~HopProbe() { links_.detach(); }

void HopProbe::send(int rank) {
  ranks_[rank].waits = true;
  ranks_[rank].sent = core::Clock::now();
  (void)links_.send(rank, encode(Probe{}));
}

// Nobody has anything else to say now; what is said all the same is no echo.
void HopProbe::take(int rank, std::span<const std::byte> bytes) {
  const auto found = ranks_.find(rank);
  const auto message = decode_rendezvous(bytes);
  if (found == ranks_.end() || !message || !std::holds_alternative<Probe>(*message)) return;
  Rank& probed = found->second;
  const core::TimePoint now = core::Clock::now();
  probed.shortest = std::min<core::Duration>(probed.shortest, now - probed.sent);
  probed.waits = false;
  if (++probed.echoes < kRounds && now - started_ < kLongest) send(rank);
  look_whether_over();
}

void HopProbe::look_whether_over() {
  const bool waits =
      std::ranges::any_of(ranks_, [](const auto& each) { return each.second.waits; });
  over_ = over_ || !waits;
}

core::Result<double> HopProbe::hop_seconds() const {
  if (!status_) return status_.error();
  double longest = 0;
  for (const auto& [rank, probed] : ranks_) {
    if (probed.waits) {
      return core::Error{core::ErrorCode::kTimedOut,
                         fmt::format("rank {} did not answer during the start", rank), rank};
    }
    longest = std::max(longest, std::chrono::duration<double>(probed.shortest).count() / 2);
  }
  return longest;
}

}  // namespace fasthorovod::transport
