#include "core/placement_model.h"

#include <algorithm>
#include <limits>

#include "core/aux_cores.h"

namespace fasthorovod::core {
namespace {

constexpr double kSecond = 1e9;                                  // in ns
constexpr std::size_t kReceivedAtOnce = std::size_t{128} << 10;  // by a lane, into a scratch
constexpr double kFull = 0.95;
// Of a chunk between rank and auxiliary: one message each way for what leaves and for what comes.
constexpr double kHopsOfAChunk = 2;

double calls_receiving(const LaneLoad& load) {
  const std::size_t calls = (load.chunk_bytes + kReceivedAtOnce - 1) / kReceivedAtOnce;
  return static_cast<double>(calls);
}

// What is on its way at a time, in both directions.
double queued_bytes(const LaneLoad& load) {
  const double scratch = load.added > 0 ? static_cast<double>(kReceivedAtOnce) : 0;
  return 2 * load.flows * (static_cast<double>(load.chunk_bytes) + scratch);
}

double byte_time(const LaneCosts& costs, const ByteCosts& bytes, const LaneLoad& load) {
  const double put_down = (1 - load.added) * bytes.receive;
  const double added = load.added * (bytes.receive_scratch + bytes.add);
  const double calls = bytes.send_call + calls_receiving(load) * bytes.receive_call;
  // A turn of the loop serves all flows that can move something. Each chunk costs a look whether
  // the socket has room, and one that finds that no more has come.
  const double chunk = calls + 2 * costs.look + costs.turn / std::max(load.flows, 1);
  return bytes.send + put_down + added + chunk / static_cast<double>(load.chunk_bytes);
}

// Nanoseconds for a byte each way.
double byte_time(const LaneCosts& costs, const QueueCosts& queue, const LaneLoad& load) {
  const double far = std::max(0.0, 1 - costs.cache / queued_bytes(load));
  return (1 - far) * byte_time(costs, queue.close, load) + far * byte_time(costs, queue.far, load);
}

std::optional<QueueCosts> costs_in(const LaneCosts& costs, LaneSetting setting) {
  if (setting == LaneSetting::kBusyCore) return costs.busy;
  return setting == LaneSetting::kHungryCache ? costs.hungry : costs.alone;
}

}  // namespace

Goodput lane_goodput(const LaneCosts& costs, const LaneLoad& load, LaneSetting setting) {
  const auto queue = costs_in(costs, setting);
  return queue ? kSecond / byte_time(costs, *queue, load) : 0;
}

LaneGoodputs goodputs_of(const LaneCosts& costs, const RankSite& site) {
  const ByteCosts& bytes = costs.alone.far;
  const double asking = kHopsOfAChunk * costs.hop / static_cast<double>(site.load.chunk_bytes);
  // What is staged is put down where it comes, and added by the rank.
  LaneLoad carried = site.load;
  if (!site.in_arena) carried.added = 0;
  const double staging =
      bytes.copy + (1 - site.load.added) * bytes.copy + site.load.added * bytes.add;
  return {.own = lane_goodput(costs, site.load, LaneSetting::kAlone),
          .auxiliary = kSecond / (byte_time(costs, costs.alone, carried) + asking),
          .staged = site.in_arena ? std::numeric_limits<double>::infinity()
                                  : kSecond / (staging + asking)};
}

Goodput rank_goodput(const LaneCosts& costs, const RankSite& site, int auxiliaries) {
  const LaneGoodputs goodputs = goodputs_of(costs, site);
  const double cores = static_cast<double>(site.cores) / std::max(site.ranks, 1);
  const double spare = std::clamp(cores - kCoresOfARank, 0.0, static_cast<double>(auxiliaries));
  const double crowded = auxiliaries - spare;
  const Goodput by_auxiliaries = (spare + crowded * costs.share) * goodputs.auxiliary;
  const double own_share = cores >= 2 ? 1 : costs.share;  // one for the program, one for the lane
  return own_share * goodputs.own + std::min(by_auxiliaries, goodputs.staged);
}

int auxiliaries_to_fill(Goodput link, Goodput own, Goodput auxiliary, int most) {
  int count = 0;
  while (count < most && own + count * auxiliary < kFull * link) ++count;
  return count;
}

}  // namespace fasthorovod::core
