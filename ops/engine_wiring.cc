// How the parts of the engine reach one another: each knows its hooks, and nothing of the others.
#include <utility>

#include "ops/engine_impl.h"

namespace fasthorovod::ops {

using core::Error;

std::unique_ptr<HostPath> EngineImpl::make_host_path() {
  if (!SharedMemory::has_mates(world_)) return nullptr;
  HostPath::Hooks hooks{
      .disagreement = [this](const Disagreement& disagreement) { disagree(disagreement); },
      .space =
          [this] {
            executor_.retry();
            ordered_.retry();
          }};
  return std::make_unique<HostPath>(world_, memory_->seats(), memory_->heap(),
                                    SharedMemory::largest_area(*control_), flows_,
                                    control_->allreduce_plan(), board_, std::move(hooks));
}

Executor::Hooks EngineImpl::executor_hooks() {
  return {.need_flows = [this](int peer) { control_->post([this, peer] { open_flows(peer); }); },
          .failed =
              [this](Error error) {
                control_->post([this, error = std::move(error)] { arbiter_.fault(error); });
              },
          .idle = [this] { control_->post([this] { now_idle(); }); }};
}

OrderedHooks EngineImpl::ordered_hooks() {
  return {.disagreement = [this](const Disagreement& disagreement) { disagree(disagreement); },
          .departure =
              [this](const Departure& departure) {
                if (door_of(departure.group) == Door::kOrdered) return ordered_.depart(departure);
                board_.fail(departure.group, departure.sequence, departure.error);
              },
          .message = [this](const ControlFrame& frame) { messages_.hear(frame); },
          .gone =
              [this](int peer, const Error& cause) {
                if (cause.code == core::ErrorCode::kShutdown) return messages_.lose(peer, cause);
                // Rank 0 may say in a moment that it left.
                control_->post([this, peer, cause] {
                  control_->call_after(FaultArbiter::kDepartureWait,
                                       [this, peer, cause] { messages_.lose(peer, cause); });
                });
              }};
}

OrderedDoor::Hooks EngineImpl::door_hooks() {
  return {.need_flows = [this](int peer) { meet(peer); },
          .report =
              [this](core::OperationFailed message) {
                control_->post([this, message = std::move(message)] { operation_failed(message); });
              },
          .idle = [this] { ordered_idle(); },
          .waits = [this] { watch_pending(); },
          .lanes = [this]() -> transport::LaneSet& { return *lanes_; }};
}

MessageDoor::Hooks EngineImpl::message_hooks() {
  return {.need_flows = [this](int peer) { meet(peer); },
          .fault = [this](int peer, Error error) { report_fault(peer, std::move(error)); },
          .idle = [this] { ordered_idle(); }};
}

Auxiliaries::Hooks EngineImpl::auxiliary_hooks() {
  return {
      .busy = [this] { return board_.in_flight() > 0; },
      .lost = [this](std::size_t index, const std::string& how) { auxiliary_lost(index, how); }};
}

Negotiator::Hooks EngineImpl::negotiator_hooks() {
  return {
      .send = [this](int rank, const core::ControlMessage& message) { (void)send(rank, message); },
      .call_after =
          [this](core::Duration delay, std::function<void()> function) {
            control_->call_after(delay, std::move(function));
          },
      .fault = [this](Error error) { arbiter_.fault(std::move(error)); }};
}

FaultArbiter::Hooks EngineImpl::arbiter_hooks() {
  return {
      .send = [this](int rank, const core::ControlMessage& message) { return send(rank, message); },
      .call_after =
          [this](core::Duration delay, std::function<void()> function) {
            control_->call_after(delay, std::move(function));
          },
      .unannounced = [this](const Error& error) { departed(error.culprit, error); },
      .conclude = [this](const Error& verdict) { conclude(verdict); }};
}

transport::ControlHandlers EngineImpl::control_handlers() {
  return {
      .on_message = [this](int rank, std::span<const std::byte> bytes) { receive(rank, bytes); },
      .on_lost =
          [this](int rank, Error error) {
            error.culprit = rank;
            if (world_.rank == 0) return arbiter_.fault(std::move(error));
            arbiter_.coordinator_lost(error);
          },
      .on_flow_wanted = [this](int peer) { open_flows(peer); },
      .on_flow =
          [this](int peer, std::uint32_t index, transport::FileDescriptor socket) {
            lanes_->add_flow(peer, index, std::move(socket));
            if (int& missing = opened_[peer]; missing > 0) {
              --missing;
              --awaited_flows_;
            }
            if (draining_) now_idle();
          },
      .on_flow_failed =
          [this](int peer, Error error) {
            error.culprit = peer;
            if (!arbiter_.has_left(peer)) arbiter_.fault(std::move(error));
          }};
}

}  // namespace fasthorovod::ops
