// What it costs a core to move bytes as a lane does, measured on one machine, each part alone. What
// follows for a lane, and for auxiliaries, is reckoned from these (placement_model.h). Plain
// values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fasthorovod::core {

/// Nanoseconds a byte, but for the calls. Tensors lie in no cache.
struct ByteCosts {
  double send = 0;             // from a tensor to a socket
  double receive = 0;          // from a socket to a tensor
  double receive_scratch = 0;  // from a socket into the scratch of a flow
  double add = 0;              // such a scratch to a tensor
  double copy = 0;             // from a tensor to another
  double send_call = 0;        // each call, whatever its size
  double receive_call = 0;     // the same

  friend bool operator==(const ByteCosts&, const ByteCosts&) = default;
};

/// What is on its way lies in the core's own cache, or there is too much of it.
struct QueueCosts {
  ByteCosts close;
  ByteCosts far;

  friend bool operator==(const QueueCosts&, const QueueCosts&) = default;
};

struct LaneCosts {
  QueueCosts alone;                    // on a core, and in its last-level cache
  std::optional<QueueCosts> busy{};    // another thread always wants the core; time, not work
  std::optional<QueueCosts> hungry{};  // a thread on another core fills the last-level cache
  double cache = 0;                    // bytes that the core's own cache holds
  double turn = 0;                     // ns, of a lane's loop that finds nothing
  double look = 0;                     // ns, a call that finds nothing in a socket
  double hop = 0;    // ns, to wake another thread and be woken by its answer, half of it
  double share = 0;  // of a core that one of two busy threads gets, 0 to 1

  friend bool operator==(const LaneCosts&, const LaneCosts&) = default;
};

/// Of a machine that was measured, for those that were not: two cores of an AMD EPYC (Zen 5), a
/// virtual machine.
LaneCosts typical_costs();

/// One value a line, "alone.close.send 0.123".
std::string to_text(const LaneCosts& costs);
/// Nothing when a value is missing, given twice, unknown or no number.
std::optional<LaneCosts> costs_from_text(std::string_view text);

}  // namespace fasthorovod::core
