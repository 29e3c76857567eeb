// Dials a process that may not be there yet, until it is or the time is up. Inside transport only:
// it shows Asio.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "transport/dialler.h"

namespace fasthorovod::transport {

struct MeetingPlan {
  Claim claim;
  std::string what;   // for messages: "the store", "rank 0"
  std::string where;  // as the user wrote it
  /// Asked before every attempt, since a name may resolve later.
  std::function<core::Result<std::vector<Endpoint>>()> endpoints;
  bool decoys =
      false;  // other processes may answer at these endpoints: what they say is not the last word
};

/// Runs the context meanwhile. The error says what was tried last, and kTimedOut when time ran out.
core::Result<Dialled> meet(boost::asio::io_context& context, const Secret& secret,
                           const MeetingPlan& plan, core::TimePoint deadline);

/// Runs the context until `done` or the deadline; whether it was done.
bool run_until(boost::asio::io_context& context, const bool& done, core::TimePoint deadline);

}  // namespace fasthorovod::transport
