#include "transport/mate_meeting.h"

#include <fmt/format.h>

#include <utility>

#include "transport/meeting.h"
#include "transport/settling.h"

namespace fasthorovod::transport {
namespace {

// How much longer than the limit a rank waits for the reason of one that could not start.
constexpr auto kGrace = std::chrono::milliseconds(1'000);
constexpr auto kFarewell = std::chrono::milliseconds(1'000);  // for this rank's reason to leave

core::Error absent(const std::vector<int>& missing) {
  return {core::ErrorCode::kTimedOut,
          fmt::format("{} of this host did not hand over memory before the time limit; ranks that "
                      "share FASTHOROVOD_HOST_IDENTITY must share a network namespace",
                      describe({missing, static_cast<int>(missing.size())})),
          missing.front()};
}

}  // namespace

core::Result<std::string> MateMeeting::open_door() {
  auto door = open_mate_door();
  if (!door) return std::move(door).error();
  door_ = std::move(*door);
  return door_->name;
}

void MateMeeting::learn(const core::World& world, std::span<const Member> members) {
  world_ = world;
  mates_ = mates_of(world.rank, members);
  somebody_has_mates_ = any_share_a_host(members);
  hosts_are_sound_ = check_shared_hosts(members);
  if (mates_.empty()) door_.reset();
}

core::Result<std::vector<Mate>> MateMeeting::meet(const Arena& own,
                                                  std::chrono::milliseconds limit) {
  if (!somebody_has_mates_) return std::vector<Mate>();
  if (!hosts_are_sound_) return hosts_are_sound_.error();
  const MateHello self{world_.job, world_.epoch, world_.rank, world_.size};
  const auto arenas = std::make_shared<MateExchange>(context_, secret_, refusals_, self, own);
  const core::Status outcome = exchange(*arenas, limit);
  links_.drain(core::Clock::now() + kFarewell);
  if (!outcome) return outcome.error();
  return arenas->take();
}

core::Status MateMeeting::exchange(MateExchange& exchange, std::chrono::milliseconds limit) {
  const core::TimePoint deadline = core::Clock::now() + limit;
  Settling settling(links_, world_);
  if (mates_.empty()) {
    settling.ready();
  } else {
    exchange.start(std::exchange(door_, {}).value(), mates_, [&settling](core::Status end) {
      end ? settling.ready() : settling.fail(std::move(end).error());
    });
  }
  run_until(context_, settling.over(), deadline);
  if (!exchange.missing().empty()) settling.fail(absent(exchange.missing()));
  // Who has a reason says it about now, and rank 0 passes it on.
  run_until(context_, settling.over(), deadline + (world_.rank == 0 ? kGrace : 2 * kGrace));
  if (!settling.over()) settling.expire();
  exchange.close();
  context_.restart();
  context_.poll();  // strangers are let go now, not when the engine runs
  return settling.outcome();
}

void MateMeeting::give_up(const core::Error& error) {
  if (!somebody_has_mates_ || !hosts_are_sound_) return;
  Settling(links_, world_).fail(error);
  links_.drain(core::Clock::now() + kFarewell);
}

}  // namespace fasthorovod::transport
