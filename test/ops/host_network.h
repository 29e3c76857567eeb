// Ranks on hosts without sockets or shared memory: the boards and flows of a BoardNetwork, and on
// each rank the steps inside its host (HostFlight), all moved by one seeded scheduler. Thread:
// owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "test/ops/board_network.h"
#include "test/ops/host_flight.h"

namespace fasthorovod::ops {

class HostNetwork final {
 public:
  /// `network.window` operations of each group are in flight on a rank.
  HostNetwork(Hosts hosts, BoardNetwork::Options network);

  /// All ranks start their operations of a group in this order; the number of the operation.
  std::size_t submit(const HostCollective& collective, const std::vector<Bytes>& inputs);

  /// A rank starts nothing until it is let go.
  void hold_back(int rank, bool held) { ranks_[static_cast<std::size_t>(rank)].held = held; }

  [[nodiscard]] BoardNetwork& boards() { return boards_; }
  [[nodiscard]] const HostFlight& flight(std::size_t operation, int rank) const {
    return *flights_[operation][static_cast<std::size_t>(rank)];
  }
  /// Every operation is over on every rank.
  [[nodiscard]] bool all_over() const;

 private:
  struct Rank {
    std::map<std::uint32_t, std::vector<std::size_t>> queues;  // operations by group
    bool held = false;
  };

  bool start_next(int rank);
  bool may_start(int rank, const std::vector<std::size_t>& queue) const;
  std::vector<HostFlight*> mates(std::size_t operation, int rank);

  const Hosts hosts_;
  const std::size_t window_;
  BoardNetwork boards_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::unique_ptr<HostFlight>>> flights_;  // by operation and rank
};

}  // namespace fasthorovod::ops
