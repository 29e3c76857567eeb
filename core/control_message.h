// The messages of the control connections, and their bytes. Every length and enumerator is checked
// on decoding: a message that no healthy peer sends is an error kProtocol that names the field,
// never a crash or an allocation by a length that the message does not hold.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/coordinator.h"
#include "core/plan.h"
#include "core/result.h"

namespace fasthorovod::core {

/// The largest control message; a longer frame is refused before it is read.
inline constexpr std::size_t kMaxControlBytes = 16u << 20;

/// A rank saw a fault in the data plane. Rank to coordinator.
struct FaultReport {
  Error error;
};

/// The verdict: every pending operation of every rank fails with this. Coordinator to all.
struct Abort {
  Error error;
};

/// This rank shuts down in good order. Any rank to coordinator, coordinator to all when it is rank
/// 0 that leaves.
struct Goodbye {
  std::uint64_t plans_applied = 0;  // the last plan whose operations it saw to their end
  int first_left = -1;              // of the coordinator: who left before it, so that all can tell
};

/// Nothing moves: are you there? Coordinator to all.
struct RollCall {};

/// The answer. Any rank to coordinator.
struct Present {};

/// One operation of the ordered door failed on a rank; the world lives on. Finder to coordinator,
/// which passes the first report of an operation on to all its members, the finder too.
struct OperationFailed {
  GroupId group = kWorldGroup;
  std::uint64_t sequence = 0;
  std::vector<int> members;  // world ranks
  Error error;
  bool ends_group = false;  // the culprit aborted it: nothing from this operation on works
};

/// Rank `from` needs flows to rank `to`. To the coordinator, which passes it on to `to`: the two
/// sides of an ordered operation, or of a message, may come to it minutes apart.
struct Meet {
  int from = 0;
  int to = 0;
};

/// A rank other than 0 has said goodbye. Coordinator to all.
struct Departed {
  int rank = 0;
};

using ControlMessage = std::variant<Submissions, Plan, FaultReport, Abort, Goodbye, RollCall,
                                    Present, OperationFailed, Meet, Departed>;

/// Of a plan's cached tensors only the positions travel.
std::vector<std::byte> encode(const ControlMessage& message);
/// A decoded plan's cached tensors have nothing but their position until ResponseCache::apply.
Result<ControlMessage> decode(std::span<const std::byte> bytes);

}  // namespace fasthorovod::core
