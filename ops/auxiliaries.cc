#include "ops/auxiliaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/aux_lane.h"
#include "transport/aux_pinning.h"
#include "transport/aux_pool.h"

namespace fasthorovod::ops {
namespace {

// Of the arena, what all auxiliaries together may use for staging; the rest is for fused buffers.
constexpr std::size_t kStagingShare = 4;
// The largest joined chunks (transport/flow_sender.cc) in each direction.
constexpr std::size_t kLeastStaging = std::size_t{1} << 20;
constexpr std::size_t kMostStaging = std::size_t{16} << 20;

core::Error refused(const core::Config& config, core::Error error) {
  return std::move(error).with_context(
      fmt::format("FASTHOROVOD_AUX=\"{}\" on rank {}", *config.auxiliaries, config.rank));
}

}  // namespace

core::Result<std::unique_ptr<Auxiliaries>> Auxiliaries::take(int count) {
  if (count == 0) return std::unique_ptr<Auxiliaries>();
  auto processes = transport::AuxPool::of_process().lease(count);
  if (!processes) return std::move(processes).error();
  return std::unique_ptr<Auxiliaries>(new Auxiliaries(std::move(*processes)));
}

core::Result<std::unique_ptr<Auxiliaries>> Auxiliaries::lease(const core::Config& config) {
  const int count = config.auxiliaries.value_or(0);
  if (core::Status can = transport::check_pinning(config.aux_pinning, count); !can) {
    return std::move(can).error();
  }
  auto taken = take(count);
  if (!taken) return refused(config, std::move(taken).error());
  return taken;
}

std::unique_ptr<Auxiliaries> Auxiliaries::lease_chosen(const core::LanePlan& plan, core::Log& log) {
  auto taken = take(plan.auxiliaries);
  if (taken) return *std::move(taken);
  log.warning(
      fmt::format("no auxiliaries (FASTHOROVOD_AUX=0 asks for none): {}", taken.error().message));
  return nullptr;
}

Auxiliaries::Auxiliaries(std::vector<transport::AuxProcessPtr> processes)
    : idle_(std::move(processes)) {}

Auxiliaries::~Auxiliaries() {
  for (auto& process : idle_) transport::AuxPool::of_process().give_back(std::move(process));
}

void Auxiliaries::pin(const core::AuxPinning& pinning, const transport::ControlPlane& control,
                      core::Log& log) {
  claims_ = transport::pin(
      idle_, pinning,
      {.interface = control.interface(), .ranks_on_host = control.ranks_on_machine()}, log);
}

core::Status Auxiliaries::start_lanes(const Home& rank, Hooks hooks,
                                      std::vector<std::unique_ptr<transport::LanePlace>>& lanes) {
  auto server = transport::AuxServer::create(std::move(hooks.busy));
  if (!server) return std::move(server).error();
  server_ = std::move(*server);
  const std::size_t share = rank.memory.arena().bytes().size() / kStagingShare / idle_.size();
  const transport::AuxHome home{.server = *server_,
                                .arena = rank.memory.arena(),
                                .heap = rank.memory.heap(),
                                .staging_bytes = std::clamp(share, kLeastStaging, kMostStaging)};
  std::vector<transport::AuxProcessPtr> processes = std::exchange(idle_, {});
  for (std::size_t index = 0; index < processes.size(); ++index) {
    auto lane = transport::AuxLane::attach(
        home, std::move(processes[index]), {.rates = rank.rates}, rank.work,
        [lost = hooks.lost, index](const std::string& how) { lost(index, how); });
    if (!lane) {
      idle_.assign(
          std::make_move_iterator(processes.begin() + static_cast<std::ptrdiff_t>(index) + 1),
          std::make_move_iterator(processes.end()));
      return std::move(lane).error();
    }
    lanes.push_back(std::move(*lane));
  }
  return {};
}

}  // namespace fasthorovod::ops
