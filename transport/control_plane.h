// The control plane of one rank: it meets the other ranks, keeps one authenticated connection to
// the coordinator (rank 0 keeps one to each rank), and opens data flows between pairs of ranks.
// Boost.Asio stays inside.
//
// connect() is the rendezvous. Every rank listens on addresses of its own (all usable interfaces of
// IPv4 and IPv6, the one on the route to the meeting point first; FASTHOROVOD_NETWORK_INTERFACE
// narrows them; loopback only when the meeting point is a loopback address, and used only between
// ranks of one real host). Rank 0 is found through the launcher's store (FASTHOROVOD_STORE) or
// listens itself at FASTHOROVOD_RENDEZVOUS. Each rank proves the job secret (handshake.h), says
// where it sits and where it listens; when all are there, rank 0 sends everybody the list. After
// start_timeout the error names the ranks that never came.
//
// Strangers (wrong secret, job, version, epoch, a taken rank, garbage, oversized first frames, slow
// talkers) are refused, counted, and logged once a minute and source; the honest ranks go on.
//
// meet_mates() then hands the ranks of each host each other's arenas.
//
// Thread: owner is whoever calls run() (the engine thread); connect(), meet_mates() and give_up()
// belong to the caller's thread before that. post(), stop() and refused() are for any thread.
// Handlers run on the owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/cost_model.h"
#include "core/lane_plan.h"
#include "core/log.h"
#include "core/result.h"
#include "core/world.h"
#include "transport/file_descriptor.h"
#include "transport/key_value_store.h"
#include "transport/mate.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

struct ControlHandlers {
  /// A whole message of a rank, in order. On rank 0 from any rank; elsewhere from rank 0.
  std::function<void(int rank, std::span<const std::byte> message)> on_message;
  /// The control connection to a rank is gone. Called at most once a rank, and not after
  /// expect_close(rank).
  std::function<void(int rank, core::Error error)> on_lost;
  /// `peer` opens flows to this rank, which has not called open_flows() for it.
  std::function<void(int peer)> on_flow_wanted = [](int) {};
  /// A data flow to `peer` is connected and authenticated; pacing is set. Its index, from 0, is
  /// the same on both sides.
  std::function<void(int peer, std::uint32_t index, FileDescriptor socket)> on_flow;
  /// The flows to `peer` could not be opened within the start limit.
  std::function<void(int peer, core::Error error)> on_flow_failed;
};

/// How many connections were refused since start, by cause.
struct Refusals {
  std::uint64_t secret = 0;
  std::uint64_t job = 0;
  std::uint64_t version = 0;
  std::uint64_t epoch = 0;
  std::uint64_t rank = 0;     // taken, out of range, or not the one that was dialled
  std::uint64_t garbage = 0;  // not our protocol, or an oversized first frame
  std::uint64_t slow = 0;     // did not finish in time, or too many strangers at once
  std::uint64_t user = 0;     // a process of another user, where ranks of one host meet
  [[nodiscard]] std::uint64_t total() const {
    return secret + job + version + epoch + rank + garbage + slow + user;
  }
};

/// A meeting that the program brings along, instead of the configuration's.
struct Meeting {
  KeyValueStore& store;  // used during the start only; the world has it for itself
  std::string where;     // host:port at which the ranks reach it, or "" when that says nothing
  Secret secret;         // used instead of a secret file
};

class ControlPlane {
 public:
  /// Blocks until all ranks are there, or for config.start_timeout. A world of one opens no socket.
  static core::Result<std::unique_ptr<ControlPlane>> connect(const core::Config& config,
                                                             std::uint32_t epoch, core::Log& log);
  static core::Result<std::unique_ptr<ControlPlane>> connect(const core::Config& config,
                                                             std::uint32_t epoch, core::Log& log,
                                                             Meeting meeting);
  virtual ~ControlPlane() = default;

  [[nodiscard]] virtual const core::World& world() const = 0;

  /// How this rank moves its data, given who shares its host.
  [[nodiscard]] virtual const core::LanePlan& lane_plan() const = 0;
  [[nodiscard]] virtual const core::LaneReasons& lane_reasons() const = 0;
  /// How many flows this rank and `peer` share, whatever each of them was told; 0 with itself.
  [[nodiscard]] virtual int flows_with(int peer) const = 0;
  /// The most that core::usual_flows says of any rank. The same on all ranks, so what must be cut
  /// alike everywhere is cut by this.
  [[nodiscard]] virtual int usual_flows() const = 0;
  /// The least that any rank allows for its shared memory, in MiB. The same on all ranks.
  [[nodiscard]] virtual int smallest_arena_mb() const = 0;
  /// By what all ranks choose the algorithm of an all-reduce. The same on all ranks.
  [[nodiscard]] virtual const core::AllreducePlan& allreduce_plan() const = 0;

  /// The interface of the address at which this rank is dialled first; "" where that is not known.
  [[nodiscard]] virtual const std::string& interface() const = 0;
  /// How many ranks share this machine's cores, this one included.
  [[nodiscard]] virtual int ranks_on_machine() const = 0;

  /// Hands `own` to the other ranks of this host and returns theirs, by rank; in a world without
  /// two ranks on one host nothing happens. Blocks until all ranks have what they need, at most
  /// for config.start_timeout; when a rank does not, the same error on all ranks names it. At most
  /// once; by all ranks or by none. Before run().
  virtual core::Result<std::vector<Mate>> meet_mates(const Arena& own) = 0;

  /// In place of meet_mates(): this rank can not start, and the others get `error` as the reason.
  virtual void give_up(const core::Error& error) = 0;

  /// Serves connections, timers and posted functions until stop(). Handlers are set once, before
  /// run().
  virtual void run(ControlHandlers handlers) = 0;
  virtual void stop() = 0;
  virtual void post(std::function<void()> function) = 0;

  /// Calls `function` on the owner after `delay`. Owner only.
  virtual void call_after(std::chrono::nanoseconds delay, std::function<void()> function) = 0;

  /// Queues a message to rank 0 (on rank 0: to any rank). To itself is refused (kInternal). Owner
  /// only.
  virtual core::Status send(int rank, std::vector<std::byte> message) = 0;

  /// From now on the end of this connection is no news. Owner only.
  virtual void expect_close(int rank) = 0;

  /// Opens `count` flows between this rank and `peer`; both sides call it (on first use), the lower
  /// rank dials. Each arrives by on_flow. Calling again for the same peer does nothing. Owner only.
  virtual void open_flows(int peer, int count) = 0;

  /// Sends what is queued, within `limit`, then closes. Owner only, before stop().
  virtual void flush(std::chrono::milliseconds limit) = 0;

  [[nodiscard]] virtual Refusals refused() const = 0;
};

}  // namespace fasthorovod::transport
