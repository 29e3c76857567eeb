// The engine behind engine.h: it owns the parts, connects them (engine_wiring.cc), and decides only
// what concerns several of them: control messages (engine_control.cc), faults and the end
// (engine_end.cc). Private to these files.
//
// Threads: members marked "engine thread" belong to the thread that runs control_; the parts state
// their own rules.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/control_message.h"
#include "ops/auxiliaries.h"
#include "ops/chunk_board.h"
#include "ops/deadline_queue.h"
#include "ops/engine.h"
#include "ops/executor.h"
#include "ops/fault_arbiter.h"
#include "ops/group_table.h"
#include "ops/host_path.h"
#include "ops/message_door.h"
#include "ops/negotiator.h"
#include "ops/ordered_door.h"
#include "ops/pending_table.h"
#include "ops/process_sets.h"
#include "ops/progress_watch.h"
#include "ops/routes.h"
#include "ops/shared_memory.h"
#include "ops/worker.h"
#include "transport/control_plane.h"
#include "transport/lane_set.h"
#include "transport/mpi_process.h"

namespace fasthorovod::ops {

class EngineImpl final : public Engine {
 public:
  /// `memory`: null where neither other ranks nor auxiliaries share it. `auxiliaries`: null when
  /// there are none; lanes of the plan that were to be theirs then run in this process.
  EngineImpl(std::unique_ptr<transport::ControlPlane> control, std::unique_ptr<SharedMemory> memory,
             std::unique_ptr<Auxiliaries> auxiliaries, const core::Config& config, core::Log& log)
      : control_(std::move(control)),
        memory_(std::move(memory)),
        auxiliaries_(std::move(auxiliaries)),
        world_(control_->world()),
        flows_(control_->usual_flows()),
        log_(log),
        pending_([this] { control_->post([this] { announce(); }); }),
        board_([this](int peer, core::Error error) { report_fault(peer, std::move(error)); },
               [this] { lanes_->wake(); }, ordered_hooks(),
               [this](int peer) { return control_->flows_with(peer); }),
        hosts_(make_host_path()),
        routes_(world_, board_, hosts_.get()),
        executor_(world_, flows_, control_->allreduce_plan(), board_, routes_, pending_, worker_,
                  executor_hooks()),
        sets_(world_),
        negotiator_(world_, config, pending_, sets_, executor_, log_, negotiator_hooks()),
        arbiter_(world_, arbiter_hooks()),
        watch_(config.stall_limit),
        groups_(world_),
        deadlines_(
            [this](core::TimePoint when) { control_->post([this, when] { wake_at(when); }); }),
        ordered_(world_, flows_, control_->allreduce_plan(), groups_, board_, routes_, worker_,
                 deadlines_, door_hooks()),
        messages_(world_, flows_, groups_, board_, worker_, deadlines_, message_hooks()) {}

  ~EngineImpl() override {
    shutdown();
    lanes_.reset();
    if (auxiliaries_) auxiliaries_->stop_serving();  // it asks the board, which goes first
  }

  /// `mpi`: what carries the data, or null.
  core::Status launch(transport::MpiProcess* mpi);

  [[nodiscard]] const core::World& world() const override { return world_; }
  core::Result<Handle> submit(Submission submission) override;
  core::Result<std::vector<Handle>> submit_bundle(const std::string& name,
                                                  std::vector<Submission> members) override;
  core::Status add_group(core::GroupId group, std::vector<int> members) override {
    return groups_.add(group, std::move(members));
  }
  void remove_group(core::GroupId group) override { drop_group(group, false); }
  void abort_group(core::GroupId group) override { drop_group(group, true); }
  core::Result<Handle> submit_ordered(OrderedOperation operation) override {
    return watched(ordered_.submit(std::move(operation)));
  }
  core::Status run(OrderedOperation operation) override {
    return ordered_.run(std::move(operation));
  }
  core::Result<Handle> send(Message message) override {
    return watched(messages_.send(std::move(message)));
  }
  core::Result<Handle> receive(Message message) override {
    return watched(messages_.receive(std::move(message)));
  }
  [[nodiscard]] std::vector<float> residual(core::GroupId group,
                                            const std::string& name) const override {
    return executor_.residuals().get(group, name);
  }
  void set_residual(core::GroupId group, const std::string& name,
                    std::vector<float> residual) override {
    executor_.residuals().put(group, name, std::move(residual));
  }
  core::Result<std::shared_ptr<std::byte>> shared_memory(std::size_t bytes) override;
  [[nodiscard]] EngineStatistics statistics() const override;
  [[nodiscard]] LaneReport lane_report() const override;
  [[nodiscard]] const core::AllreducePlan& allreduce_plan() const override {
    return control_->allreduce_plan();
  }
  void shutdown() override;

 private:
  std::unique_ptr<HostPath> make_host_path();
  Executor::Hooks executor_hooks();
  Negotiator::Hooks negotiator_hooks();
  FaultArbiter::Hooks arbiter_hooks();
  OrderedHooks ordered_hooks();
  OrderedDoor::Hooks door_hooks();
  MessageDoor::Hooks message_hooks();
  Auxiliaries::Hooks auxiliary_hooks();
  transport::ControlHandlers control_handlers();

  void receive(int rank, std::span<const std::byte> bytes);
  void goodbye(int rank, const core::Goodbye& message);
  void departed(int rank, const core::Error& words);
  [[nodiscard]] core::Error left_in_the_middle(int rank) const;
  [[nodiscard]] core::Error shut_down_words(int rank) const;
  [[nodiscard]] core::Error shut_down_here() const;
  void broadcast(const core::ControlMessage& message);
  core::Status send(int rank, const core::ControlMessage& message);

  void announce();
  core::Result<Handle> watched(core::Result<Handle> handle);
  void watch_pending();
  void watch_progress();
  void look_for_progress();
  [[nodiscard]] bool has_pending() const;
  [[nodiscard]] std::uint64_t progress() const;

  void meet(int peer);
  void open_flows(int peer);
  /// Flows are there from the beginning, and none is opened.
  [[nodiscard]] bool has_flows() const {
    return control_->lane_plan().data_plane == core::DataPlane::kMpi;
  }
  void introduce(const core::Meet& message);
  void apply_failure(const core::OperationFailed& message);
  void operation_failed(const core::OperationFailed& message);
  void ordered_idle();
  void close_ordered(const core::Error& error);
  void wake_at(core::TimePoint when);

  void disagree(const Disagreement& disagreement);
  void report_fault(int peer, core::Error error);
  void auxiliary_lost(std::size_t index, const std::string& how);
  void drop_group(core::GroupId group, bool tell);
  void conclude(const core::Error& verdict);
  void fail_everything(const core::Error& error);
  void fail_unplanned(const core::Error& error);

  [[nodiscard]] bool idle() const {
    return executor_.idle() && ordered_.idle() && messages_.idle() && awaited_flows_ <= 0;
  }
  void drain();
  void leave();
  void end_control();
  void now_idle();

  std::unique_ptr<transport::ControlPlane> control_;
  const std::unique_ptr<SharedMemory> memory_;
  const std::unique_ptr<Auxiliaries> auxiliaries_;
  const core::World& world_;
  const int flows_;  // to a peer, as all ranks believe: chunks are cut by it
  core::Log& log_;
  core::LanePlan plan_;                          // as it came out
  std::shared_ptr<transport::RateBoard> rates_;  // of all lanes; null with MPI
  std::unique_ptr<transport::LaneSet> lanes_;
  Worker worker_;
  PendingTable pending_;
  ChunkBoard board_;
  const std::unique_ptr<HostPath> hosts_;  // null without shared memory
  Routes routes_;
  Executor executor_;
  ProcessSets sets_;
  Negotiator negotiator_;
  FaultArbiter arbiter_;
  ProgressWatch watch_;
  GroupTable groups_;
  DeadlineQueue deadlines_;
  OrderedDoor ordered_;
  MessageDoor messages_;

  std::mutex meet_mutex_;
  std::set<int> met_;                    // peers that flows were asked for by the ordered door
  std::map<int, int> opened_;            // engine thread: peers that flows are opened to, and how
                                         // many of theirs are not there yet
  int awaited_flows_ = 0;                // engine thread: of all peers
  std::optional<core::TimePoint> wake_;  // engine thread: when the timer of deadlines_ fires
  std::set<std::pair<core::GroupId, std::uint64_t>> failures_;  // engine thread, rank 0: passed on

  std::atomic<bool> watching_{false};   // set before has_pending() is asked; partner: watched()
  std::optional<core::Error> verdict_;  // engine thread, and after its end who shuts down
  int first_left_ = -1;                 // engine thread, rank 0: who said goodbye first
  bool coordinator_left_ = false;       // engine thread: rank 0 has said goodbye
  bool draining_ = false;  // engine thread: shutdown has begun; plans that come now are not for us
  std::atomic<bool> awaits_idle_{false};  // set before idle() is asked; partner: ordered_idle()
  bool leaving_ = false;                  // engine thread: goodbye was said

  std::mutex shutdown_mutex_;  // serialises shutdown() callers
  bool shut_down_ = false;
  std::thread engine_thread_;
};

}  // namespace fasthorovod::ops
