// What ranks know of each other, and the messages through which they learn it. Immutable values;
// any thread.
//
// A rank introduces itself to rank 0 over its proven control connection. Until all are there, rank
// 0 tells those who wait whom it is missing; then everybody gets the roster, or, when the start
// failed, the reason. Where ranks of one host share memory, each then says that it is ready, and
// rank 0 that all may begin (settling.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/cost_model.h"
#include "core/lane_plan.h"
#include "core/result.h"
#include "core/world.h"
#include "transport/endpoint.h"

namespace fasthorovod::transport {

struct Member {
  core::Placement placement;  // an override of the host identity shows here
  std::string real_host;  // and not here: ranks with the same one reach each other through loopback
  std::vector<Endpoint> endpoints;  // where it listens, best first, without scopes
  std::string door{};     // the name of the Unix socket at which ranks of its host meet it, or ""
  core::LaneWish wish{};  // how it would move its data
  int arena_mb = core::kLeastArenaMb;  // of its shared memory at most
  core::AllreduceWish allreduce{};     // by which algorithm it would reduce between hosts

  friend bool operator==(const Member&, const Member&) = default;
};

inline constexpr std::size_t kMaxEndpoints = 32;

struct Introduction {
  int size = 0;  // the world as this rank was told
  Member member;
};

struct Missing {
  std::vector<int> ranks;  // the lowest ones
  int count = 0;           // all
};

struct Roster {
  std::vector<Member> members;  // by rank
  core::AllreducePlan allreduce{};
};

struct StartFailed {
  core::Error error;
};

struct Ready {};

struct Begin {};

inline constexpr std::uint32_t kMostPadding = 256U << 10;

/// From rank 0, and back without padding.
struct Probe {
  std::uint32_t padding = 0;  // bytes that say nothing, up to kMostPadding
};

using RendezvousMessage =
    std::variant<Introduction, Missing, Roster, StartFailed, Ready, Begin, Probe>;

std::vector<std::byte> encode(const RendezvousMessage& message);
core::Result<RendezvousMessage> decode_rendezvous(std::span<const std::byte> bytes);

/// "rank 3" or "ranks 3, 5 and 7 more"
std::string describe(const Missing& missing);

/// kInvalidArgument, the same on all ranks, when they do not agree on what carries their data.
core::Status check_data_planes(std::span<const Member> members);
/// The same for what they were told of algorithms.
core::Status check_allreduces(std::span<const Member> members);

/// Where `peer` is to be dialled from here, in order: loopback when it is on this real host, then
/// the rest. Link-local addresses are tried on each of `scopes` (interfaces of this host that have
/// such addresses).
std::vector<Endpoint> dialling_order(const Member& peer, const std::string& own_real_host,
                                     std::span<const std::uint32_t> scopes);

}  // namespace fasthorovod::transport
