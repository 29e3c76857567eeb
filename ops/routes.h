// The routes an operation can take: the schedule of its algorithm on the chunk board, or, for an
// all-reduce among ranks of which some share a host, through the hosts' shared memory (HostPath).
// Which one it is depends on nothing that differs between its ranks.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "ops/algorithm_table.h"
#include "ops/chunk_board.h"
#include "ops/host_path.h"
#include "ops/operation.h"

namespace fasthorovod::ops {

class Routes final {
 public:
  /// `hosts`: null in a world in which no two ranks share a host.
  Routes(const core::World& world, ChunkBoard& board, HostPath* hosts)
      : world_(world), board_(board), hosts_(hosts) {}

  /// How an operation starts.
  struct Start {
    const Algorithm& algorithm;
    const Shape& shape;
    /// What an all-reduce reduces into the operation's buffer, which are the same memory or apart;
    /// other operations work on the buffer, and the source.
    std::span<const std::byte> input;
    bool alone = false;  // its group has nothing else under way on this rank
  };

  /// Starts an operation, which brings all but its schedule. `meet` is called before that for each
  /// rank of the world with which data will be exchanged over the network. False, and nothing has
  /// happened: there is no shared memory for it now, and HostPath's hook tells when to try again.
  [[nodiscard]] bool start(Operation operation, const Start& how,
                           const std::function<void(int rank)>& meet);

  /// Whether run() can take an operation of that kind: it is not empty and stays on one host.
  [[nodiscard]] bool stays_on_host(OrderedKind kind, const std::vector<int>& members) const;
  /// HostPath::run.
  [[nodiscard]] HostPath::Run run(const HostKind& kind, const HostCall& call,
                                  const std::function<Operation()>& whole,
                                  const std::atomic<bool>& wanted, core::TimePoint until,
                                  core::Status& outcome) {
    return hosts_->run(kind, call, whole, wanted, until, outcome);
  }

  /// Whether operations of that kind in that group reduce inside hosts.
  [[nodiscard]] bool inside_hosts(OrderedKind kind, const std::vector<int>& members) const;
  /// What does so. Only where some do.
  [[nodiscard]] HostTeam& team() { return hosts_->team(); }

  /// Ranks of this host that have not begun an operation of this rank hear of it over the network,
  /// too: should they have called something else, they would never look for it in shared memory.
  /// `meet` as above.
  void tell_mates(std::uint32_t group, std::uint64_t sequence,
                  const std::function<void(int rank)>& meet);

  /// ChunkBoard::fail, whatever route the operation took.
  void fail(std::uint32_t group, std::uint64_t sequence, const core::Error& error);

  /// World ranks that this rank knows not to be ready for an operation in flight.
  [[nodiscard]] std::vector<int> awaited(std::uint32_t group, std::uint64_t sequence) const;

  /// Of those, the ones that share this host.
  [[nodiscard]] std::vector<int> awaited_mates(std::uint32_t group, std::uint64_t sequence) const {
    return hosts_ == nullptr ? std::vector<int>{} : hosts_->awaited(group, sequence);
  }

 private:
  const core::World& world_;
  ChunkBoard& board_;
  HostPath* const hosts_;
};

}  // namespace fasthorovod::ops
