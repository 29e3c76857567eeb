// The engine of one rank: takes tensors, agrees with the other ranks on an order, fuses,
// communicates, completes handles. The only header the doors (torch_binding) need.
//
// Threads: the engine thread (control messages, coordinator on rank 0), one or several lanes
// (data), one worker (copies into and out of fused buffers, completions). They sleep until there is
// work: no cycle, no polling.
//
// Life of an operation: submit() checks it, takes the name, and returns a handle; it never
// completes inside the call. The engine thread tells the coordinator; a plan comes back; the worker
// copies in, the lanes run the schedule, the worker copies out and completes the handle. Whatever
// goes wrong completes it too: every accepted operation completes exactly once, also on failure and
// shutdown.
//
// After a fault (a rank lost, a protocol error) every pending handle fails with one verdict that
// names the rank at fault, and so does every later submit, until this engine is replaced by the
// next epoch's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/cost_model.h"
#include "core/lane_plan.h"
#include "core/log.h"
#include "core/request.h"
#include "core/result.h"
#include "core/world.h"
#include "ops/handle.h"
#include "ops/ordered.h"
#include "transport/control_plane.h"
#include "transport/peer_rates.h"

namespace fasthorovod::ops {

/// One tensor handed to the engine. Memory is lent until the handle is done; `keep_alive` is
/// dropped by the engine just before that, whatever happens, so that the owner may be somebody who
/// forgot the tensor.
///
/// A request's group is the world or a process set that this rank is in. A set is made, or removed,
/// by kAddGroup or kRemoveGroup, which all ranks of the world submit with the same ranks; the
/// handle of the first then tells its number.
struct Submission {
  core::Request request;
  const void* input =
      nullptr;  // all-reduce, all-gather, and broadcast on its root: dense, request.shape
  void* output = nullptr;  // all-reduce, broadcast: dense, request.shape; may be `input`
  /// All-gather: memory for the result of this shape, asked once when the sizes of all ranks are
  /// known. Called on the worker; must not wait for another operation.
  std::function<core::Result<void*>(const std::vector<std::int64_t>& shape)> allocate_output;
  /// Called on the worker when the result is in place, before the handle is done; only on success.
  /// Other operations complete only after it; it must not wait for one.
  std::function<void()> then;
  std::shared_ptr<void> keep_alive;  // owners: the engine until completion, the caller as it likes
};

/// Counters since the engine started.
struct EngineStatistics {
  std::uint64_t operations = 0;     // plan items executed
  std::uint64_t tensors = 0;        // tensors in them
  std::uint64_t payload_bytes = 0;  // bytes of those tensors
  std::uint64_t bytes_sent = 0;     // on data flows, headers included
  std::uint64_t bytes_received = 0;
  std::uint64_t cache_hits = 0;  // requests that cost one bit
  std::uint64_t refused_connections = 0;
};

/// How this rank moves its data, why, and what is known of its flows by now.
struct LaneReport {
  core::LaneReasons reasons;
  core::LanePlan plan;
  std::vector<transport::PeerReport> peers;  // flows of all its lanes; none over MPI
};

class Engine {
 public:
  /// Meets the other ranks (blocks, at most config.start_timeout) and starts the threads. `log`
  /// outlives the engine.
  static core::Result<std::unique_ptr<Engine>> start(const core::Config& config,
                                                     std::uint32_t epoch, core::Log& log);
  /// The same, at a meeting that the program brings along; config says rank, size and job.
  static core::Result<std::unique_ptr<Engine>> start(const core::Config& config,
                                                     std::uint32_t epoch, core::Log& log,
                                                     transport::Meeting meeting);

  /// Shuts down.
  virtual ~Engine() = default;

  [[nodiscard]] virtual const core::World& world() const = 0;

  /// Errors at once, with nothing submitted: kDuplicateName (that name is in flight here),
  /// kInvalidArgument (a request that can never work), kShutdown, or the verdict after a fault.
  virtual core::Result<Handle> submit(Submission submission) = 0;

  /// Submits a bundle: its members run together, in one fused operation where types allow. Either
  /// all are accepted or none. The requests' bundle fields are filled in here from `name`.
  virtual core::Result<std::vector<Handle>> submit_bundle(const std::string& name,
                                                          std::vector<Submission> members) = 0;

  /// Makes a group of the ordered door known to this rank (process sets are apart): world ranks by
  /// position, this one among them. Every member calls it before its first operation of the group,
  /// in any order; an id is never used again. Cheap: no socket, no thread, no message.
  virtual core::Status add_group(core::GroupId group, std::vector<int> members) = 0;

  /// Forgets a group; what is pending in it fails with kShutdown.
  virtual void remove_group(core::GroupId group) = 0;

  /// The same, and the other members hear of it: whatever they call in the group from now on, and
  /// receives that name this rank, fail with kShutdown.
  virtual void abort_group(core::GroupId group) = 0;

  /// Starts an operation of the ordered door (ordered.h). Errors at once: kInvalidArgument (an
  /// unknown group, sizes that do not fit), kShutdown, or the verdict after a fault.
  virtual core::Result<Handle> submit_ordered(OrderedOperation operation) = 0;

  /// The same as to submit the operation and to wait for it, but without a hand-over to other
  /// threads where that is possible, which is much faster for small ones. Ranks may mix both.
  /// Blocks; the errors of both. Any thread but those of the engine.
  virtual core::Status run(OrderedOperation operation) = 0;

  /// Point-to-point. A send is done when its bytes have left; it never waits inside the call.
  virtual core::Result<Handle> send(Message message) = 0;
  /// After success, Handle::source() is the sender's position in the group.
  virtual core::Result<Handle> receive(Message message) = 0;

  /// What a codec lost of a tensor of the named door and keeps for its next step: a copy, empty
  /// when there is nothing. Not while that tensor is in flight.
  [[nodiscard]] virtual std::vector<float> residual(core::GroupId group,
                                                    const std::string& name) const = 0;
  /// Puts such a residual in place, as from a checkpoint. One of another size than its tensor is
  /// dropped at the tensor's next step.
  virtual void set_residual(core::GroupId group, const std::string& name,
                            std::vector<float> residual) = 0;

  /// Memory for tensors that the other ranks of this host, and auxiliaries, read where it is:
  /// operations on it save copies, and give the same bits. Page aligned, contents undefined. It
  /// stays valid as long as anybody holds it, also after this engine; for a later engine it is
  /// memory like any other. A forked child must not touch it. In a world where a rank shares
  /// memory with nobody it is ordinary memory. kUnavailable: there is no room, or no memory.
  [[nodiscard]] virtual core::Result<std::shared_ptr<std::byte>> shared_memory(
      std::size_t bytes) = 0;

  [[nodiscard]] virtual EngineStatistics statistics() const = 0;

  [[nodiscard]] virtual LaneReport lane_report() const = 0;

  /// By what all ranks of the world choose the algorithm of an all-reduce, and the figures behind
  /// it: the same on all ranks, from the start on.
  [[nodiscard]] virtual const core::AllreducePlan& allreduce_plan() const = 0;

  /// Fails what is pending with kShutdown, says goodbye to the other ranks, joins the threads, and
  /// waits for callers to leave run(). Idempotent.
  virtual void shutdown() = 0;
};

}  // namespace fasthorovod::ops
