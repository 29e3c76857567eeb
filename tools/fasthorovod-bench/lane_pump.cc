#include "tools/fasthorovod-bench/lane_pump.h"

#include <memory>
#include <vector>

#include "core/clock.h"
#include "tools/fasthorovod-bench/endless_work.h"
#include "tools/fasthorovod-bench/loopback_pair.h"
#include "transport/lane.h"

namespace fasthorovod::tools {
namespace {

constexpr std::chrono::milliseconds kNoWait{0};
constexpr int kTurnsBetweenLooks = 64;
constexpr std::chrono::milliseconds kWarmUp{20};

struct End {
  explicit End(const core::LaneLoad& load)
      : from(EndlessWork::kMemory, std::byte{0}),
        into(EndlessWork::kMemory, std::byte{0}),
        work(load, from, into) {}
  std::vector<std::byte> from;
  std::vector<std::byte> into;
  EndlessWork work;
  std::unique_ptr<transport::Lane> lane;
};

core::Status connect(End& near, End& far, int flows) {
  for (End* end : {&near, &far}) {
    auto lane = transport::Lane::create({}, end->work);
    if (!lane) return std::move(lane).error();
    end->lane = std::move(*lane);
  }
  for (int flow = 0; flow < flows; ++flow) {
    auto sockets = loopback_pair();
    if (!sockets) return std::move(sockets).error();
    near.lane->add_flow(1, std::move(sockets->first));
    far.lane->add_flow(0, std::move(sockets->second));
  }
  return {};
}

void turn_for(End& near, End& far, core::Duration time) {
  const core::TimePoint end = core::Clock::now() + time;
  while (core::Clock::now() < end) {
    for (int turn = 0; turn < kTurnsBetweenLooks; ++turn) {
      near.lane->step(kNoWait);
      far.lane->step(kNoWait);
    }
  }
}

}  // namespace

core::Result<double> pump(const core::LaneLoad& load, std::chrono::milliseconds time) {
  End near(load);
  End far(load);
  if (core::Status connected = connect(near, far, load.flows); !connected) {
    return std::move(connected).error();
  }
  turn_for(near, far, kWarmUp);
  const std::uint64_t before = near.work.received_bytes() + far.work.received_bytes();
  const core::TimePoint start = core::Clock::now();
  turn_for(near, far, time);
  const double seconds = std::chrono::duration<double>(core::Clock::now() - start).count();
  const std::uint64_t after = near.work.received_bytes() + far.work.received_bytes();
  if (near.work.broke() || far.work.broke()) {
    return core::Error{core::ErrorCode::kInternal, "a lane to itself broke"};
  }
  return static_cast<double>(after - before) / seconds;
}

}  // namespace fasthorovod::tools
