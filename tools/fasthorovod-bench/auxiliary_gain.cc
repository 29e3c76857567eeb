#include "tools/fasthorovod-bench/auxiliary_gain.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "tools/fasthorovod-bench/endless_work.h"
#include "tools/fasthorovod-bench/loopback_pair.h"
#include "transport/arena.h"
#include "transport/arena_heap.h"
#include "transport/aux_lane.h"
#include "transport/aux_pinning.h"
#include "transport/aux_pool.h"
#include "transport/aux_server.h"
#include "transport/thread_lane.h"

namespace fasthorovod::tools {
namespace {

using Lanes = std::vector<std::unique_ptr<transport::LanePlace>>;

constexpr std::size_t kArena = std::size_t{512} << 20;
constexpr std::chrono::milliseconds kWarmUp{100};

/// Memory for one rank, and what its lanes are asked for.
struct Rank {
  Rank(transport::Arena shared, const core::RankSite& site)
      : arena(std::move(shared)),
        heap(arena, arena.bytes()),
        own(site.in_arena ? 0 : 2 * EndlessWork::kMemory, std::byte{0}),
        memory(site.in_arena ? heap.allocate(2 * EndlessWork::kMemory) : std::span(own)),
        work(site.load, memory.first(EndlessWork::kMemory), memory.last(EndlessWork::kMemory)) {}

  transport::Arena arena;
  transport::ArenaHeap heap;
  std::vector<std::byte> own;
  std::span<std::byte> memory;
  EndlessWork work;
};

core::Result<std::unique_ptr<Rank>> make_rank(const core::RankSite& site) {
  auto arena = transport::Arena::create(kArena);
  if (!arena) return std::move(arena).error();
  return std::make_unique<Rank>(std::move(*arena), site);
}

core::Status add_threads(Rank& rank, int count, Lanes& lanes) {
  for (int lane = 0; lane < count; ++lane) {
    auto started = transport::ThreadLane::start({}, rank.work);
    if (!started) return std::move(started).error();
    lanes.push_back(std::move(*started));
  }
  return {};
}

/// On cores of their own while the claims live.
core::Result<std::vector<transport::CoreClaim>> add_auxiliaries(Rank& rank,
                                                                transport::AuxServer& server,
                                                                int count, core::Log& log,
                                                                Lanes& lanes) {
  std::vector<transport::CoreClaim> claims;
  if (count == 0) return claims;
  auto processes = transport::AuxPool::of_process().lease(count);
  if (!processes) return std::move(processes).error();
  claims = transport::pin(*processes, {}, {}, log);
  const transport::AuxHome home{.server = server, .arena = rank.arena, .heap = rank.heap};
  core::Status attached;
  for (auto& process : *processes) {
    if (!attached) {
      transport::AuxPool::of_process().give_back(std::move(process));
      continue;
    }
    auto lane = transport::AuxLane::attach(
        home, std::move(process), {}, rank.work,
        [&log](const std::string& how) { log.warning("an auxiliary " + how); });
    if (lane) {
      lanes.push_back(std::move(*lane));
    } else {
      attached = std::move(lane).error();
    }
  }
  if (!attached) return std::move(attached).error();
  return claims;
}

core::Status connect(Lanes& near, Lanes& far, int flows) {
  for (std::size_t lane = 0; lane < near.size(); ++lane) {
    for (int flow = 0; flow < flows; ++flow) {
      auto sockets = loopback_pair();
      if (!sockets) return std::move(sockets).error();
      near[lane]->add_flow(1, std::move(sockets->first));
      far[lane]->add_flow(0, std::move(sockets->second));
    }
  }
  return {};
}

}  // namespace

core::Result<double> rank_with_auxiliaries(const core::RankSite& site, int auxiliaries,
                                           std::chrono::milliseconds time, core::Log& log) {
  auto near = make_rank(site);
  auto far = make_rank({.in_arena = false, .load = site.load});
  if (!near || !far) return (!near ? near : far).error();
  auto server = transport::AuxServer::create([] { return true; });
  if (!server) return std::move(server).error();
  Lanes near_lanes;
  Lanes far_lanes;
  core::Status ready = add_threads(**near, 1, near_lanes);
  if (ready) ready = add_threads(**far, 1 + auxiliaries, far_lanes);
  if (!ready) return std::move(ready).error();
  const auto claims = add_auxiliaries(**near, **server, auxiliaries, log, near_lanes);
  if (!claims) return claims.error();
  (*server)->publish();
  if (core::Status all = connect(near_lanes, far_lanes, site.load.flows); !all) {
    return std::move(all).error();
  }
  std::this_thread::sleep_for(kWarmUp);
  const std::uint64_t before = (*near)->work.received_bytes() + (*far)->work.received_bytes();
  const core::TimePoint start = core::Clock::now();
  std::this_thread::sleep_for(time);
  const std::uint64_t after = (*near)->work.received_bytes() + (*far)->work.received_bytes();
  const double seconds = std::chrono::duration<double>(core::Clock::now() - start).count();
  const bool broke = (*near)->work.broke() || (*far)->work.broke();
  for (Lanes* lanes : {&near_lanes, &far_lanes}) {
    for (const auto& lane : *lanes) lane->begin_stop();
  }
  for (Lanes* lanes : {&near_lanes, &far_lanes}) {
    for (const auto& lane : *lanes) lane->stop();
  }
  if (broke) return core::Error{core::ErrorCode::kUnavailable, "a lane or its auxiliary ended"};
  return static_cast<double>(after - before) / 2 / seconds;
}

}  // namespace fasthorovod::tools
