#include "test/ops/host_network.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::ops {
namespace {

BoardNetwork::Options sized(BoardNetwork::Options options, int size) {
  options.size = size;
  return options;
}

}  // namespace

HostNetwork::HostNetwork(Hosts hosts, BoardNetwork::Options network)
    : hosts_(std::move(hosts)),
      window_(network.window),
      boards_(sized(network, count_ranks(hosts_))),
      ranks_(static_cast<std::size_t>(count_ranks(hosts_))) {
  for (int rank = 0; rank < count_ranks(hosts_); ++rank) {
    boards_.add_actor([this, rank] { return start_next(rank); });
  }
}

std::size_t HostNetwork::submit(const HostCollective& collective,
                                const std::vector<Bytes>& inputs) {
  auto& flights = flights_.emplace_back();
  for (int rank = 0; rank < count_ranks(hosts_); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    flights.push_back(std::make_unique<HostFlight>(collective, hosts_, rank, inputs[at]));
    boards_.add_actor([flight = flights.back().get()] { return flight->advance(); });
    ranks_[at].queues[collective.group].push_back(flights_.size() - 1);
  }
  return flights_.size() - 1;
}

bool HostNetwork::start_next(int rank) {
  Rank& self = ranks_[static_cast<std::size_t>(rank)];
  if (self.held) return false;
  for (auto& [group, queue] : self.queues) {
    if (!may_start(rank, queue)) continue;
    const auto next = std::ranges::find_if(
        queue, [&](std::size_t operation) { return !flight(operation, rank).started(); });
    flights_[*next][static_cast<std::size_t>(rank)]->start(boards_.board(rank), mates(*next, rank));
    return true;
  }
  return false;
}

bool HostNetwork::may_start(int rank, const std::vector<std::size_t>& queue) const {
  const auto waits = [&](std::size_t operation) { return !flight(operation, rank).started(); };
  const auto flies = [&](std::size_t operation) {
    return flight(operation, rank).started() && !flight(operation, rank).over();
  };
  return std::ranges::any_of(queue, waits) &&
         std::cmp_less(std::ranges::count_if(queue, flies), window_);
}

std::vector<HostFlight*> HostNetwork::mates(std::size_t operation, int rank) {
  std::vector<HostFlight*> mates;
  for (const int mate : hosts_[static_cast<std::size_t>(flight(operation, rank).layout().host)]) {
    mates.push_back(flights_[operation][static_cast<std::size_t>(mate)].get());
  }
  return mates;
}

bool HostNetwork::all_over() const {
  return std::ranges::all_of(flights_, [](const auto& flights) {
    return std::ranges::all_of(flights, [](const auto& flight) { return flight->over(); });
  });
}

}  // namespace fasthorovod::ops
