// Which ranks share a host, and where each of them is met, as the roster says. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/member.h"

namespace fasthorovod::transport {

struct MateAddress {
  int rank = 0;
  std::string door;
};

/// The other ranks of the host of `rank`, ascending.
std::vector<MateAddress> mates_of(int rank, std::span<const Member> members);

/// Whether any host has two ranks: the same on all ranks.
bool any_share_a_host(std::span<const Member> members);

/// Ranks that count as ranks of one host can reach each other's doors. Says the same on all ranks.
core::Status check_shared_hosts(std::span<const Member> members);

}  // namespace fasthorovod::transport
