#include "ops/engine.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "compression/instruction_set.h"
#include "ops/engine_impl.h"
#include "ops/lane_places.h"
#include "ops/processor_costs.h"
#include "ops/submission_check.h"

namespace fasthorovod::ops {

using core::Error;
using core::ErrorCode;
using transport::ControlPlane;

namespace {

// Nobody shares it.
core::Result<std::shared_ptr<std::byte>> private_memory(std::size_t bytes) {
  constexpr std::align_val_t kAlignment{transport::Arena::kPage};
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (memory == nullptr) {
    return Error{ErrorCode::kUnavailable, fmt::format("no memory for {} MiB", bytes >> 20)};
  }
  return std::shared_ptr<std::byte>(memory,
                                    [](std::byte* first) { ::operator delete(first, kAlignment); });
}

}  // namespace

core::Status EngineImpl::launch(transport::MpiProcess* mpi) {
  plan_ = control_->lane_plan();
  if (!auxiliaries_) plan_.auxiliaries = 0;
  auto lanes = mpi != nullptr
                   ? start_mpi_lane(world_, *mpi, board_, [this] { return board_.in_flight() > 0; })
                   : start_lanes(plan_, board_, rates_ = make_rate_board(plan_));
  if (!lanes) return std::move(lanes).error();
  if (auxiliaries_) {
    core::Status joined =
        auxiliaries_->start_lanes({*memory_, board_, rates_}, auxiliary_hooks(), *lanes);
    if (!joined) return joined;
  }
  if (memory_) {
    executor_.put_buffers_in(memory_->heap());
    ordered_.put_buffers_in(memory_->heap());
  }
  lanes_ = std::make_unique<transport::LaneSet>(std::move(*lanes));
  lanes_->wake();  // from now on what comes may wake them
  if (auxiliaries_) auxiliaries_->publish();
  worker_.on_wanted([this] {
    if (hosts_ != nullptr) hosts_->nudge();
    lanes_->wake();
  });
  engine_thread_ = std::thread([this] { control_->run(control_handlers()); });
  return {};
}

core::Result<Handle> EngineImpl::submit(Submission submission) {
  if (core::Status status = check(submission, sets_); !status) return std::move(status).error();
  std::vector<Submission> one;
  one.push_back(std::move(submission));
  auto handles = pending_.add(std::move(one));
  if (!handles) return std::move(handles).error();
  return handles->front();
}

core::Result<std::vector<Handle>> EngineImpl::submit_bundle(const std::string& name,
                                                            std::vector<Submission> members) {
  if (name.empty()) return Error{ErrorCode::kInvalidArgument, "a bundle needs a name"};
  for (Submission& member : members) {
    member.request.bundle = name;
    member.request.bundle_size = static_cast<std::uint32_t>(members.size());
    if (core::Status status = check(member, sets_); !status) return std::move(status).error();
  }
  return pending_.add(std::move(members));
}

core::Result<std::shared_ptr<std::byte>> EngineImpl::shared_memory(std::size_t bytes) {
  return memory_ ? memory_->lend(bytes) : private_memory(bytes);
}

EngineStatistics EngineImpl::statistics() const {
  const transport::LaneStatistics lane = lanes_->statistics();
  const std::uint64_t ordered = ordered_.operations() + messages_.messages();
  return {.operations = executor_.items() + ordered,
          .tensors = executor_.tensors() + ordered,
          .payload_bytes =
              executor_.payload_bytes() + ordered_.payload_bytes() + messages_.payload_bytes(),
          .bytes_sent = lane.bytes_sent,
          .bytes_received = lane.bytes_received,
          .cache_hits = negotiator_.cache_hits(),
          .refused_connections = control_->refused().total()};
}

LaneReport EngineImpl::lane_report() const {
  return {.reasons = control_->lane_reasons(),
          .plan = plan_,
          .peers = rates_ ? rates_->reports() : std::vector<transport::PeerReport>()};
}

namespace {

// Rank 0 makes the plan for all-reduces. Whether there are several hosts it does not know yet.
core::Config with_processor_costs(core::Config config) {
  const bool chooses = !config.allreduce && !config.deterministic;
  if (config.rank == 0 && config.size > 1 && chooses && !config.processor) {
    config.processor = measure_processor_costs();
  }
  return config;
}

// Leases what was asked for before `connect` meets the ranks: who can not have it counts as absent.
template <typename Connect>
core::Result<std::unique_ptr<Engine>> start_engine(const core::Config& config, core::Log& log,
                                                   Connect connect) {
  if (core::Status simd = compression::use_instruction_set(config.simd); !simd) {
    return std::move(simd).error().with_context("FASTHOROVOD_SIMD");
  }
  auto mpi = reach_data_plane(config);
  if (!mpi) return std::move(mpi).error();
  auto auxiliaries = Auxiliaries::lease(config);
  if (!auxiliaries) return std::move(auxiliaries).error();
  core::Result<std::unique_ptr<ControlPlane>> control = connect(with_processor_costs(config));
  if (!control) return std::move(control).error();
  if (!config.auxiliaries) *auxiliaries = Auxiliaries::lease_chosen((*control)->lane_plan(), log);
  if (*auxiliaries != nullptr) (*auxiliaries)->pin(config.aux_pinning, **control, log);
  std::unique_ptr<SharedMemory> memory;
  if (*auxiliaries != nullptr || SharedMemory::has_mates((*control)->world())) {
    auto made = SharedMemory::make(**control, config.arena_mb);
    if (!made) return std::move(made).error();
    memory = *std::move(made);
  }
  auto engine = std::make_unique<EngineImpl>(*std::move(control), std::move(memory),
                                             *std::move(auxiliaries), config, log);
  if (core::Status launched = engine->launch(*mpi); !launched) return std::move(launched).error();
  const int ranks = engine->world().size;
  log.debug("all-reduces between hosts: " + describe(engine->allreduce_plan(), ranks));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace

core::Result<std::unique_ptr<Engine>> Engine::start(const core::Config& config, std::uint32_t epoch,
                                                    core::Log& log) {
  return start_engine(config, log, [&](const core::Config& whole) {
    return ControlPlane::connect(whole, epoch, log);
  });
}

core::Result<std::unique_ptr<Engine>> Engine::start(const core::Config& config, std::uint32_t epoch,
                                                    core::Log& log, transport::Meeting meeting) {
  return start_engine(config, log, [&](const core::Config& whole) {
    return ControlPlane::connect(whole, epoch, log, std::move(meeting));
  });
}

}  // namespace fasthorovod::ops
