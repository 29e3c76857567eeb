// How the ranks of a world find together, once they can be dialled: rank 0 gathers, the others
// join.
//
// Thread: owner (the io_context's). The waits run the context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/result.h"
#include "transport/control_links.h"
#include "transport/dialler.h"
#include "transport/listener.h"
#include "transport/member.h"

namespace fasthorovod::transport {

/// Rank 0's side. Outlives the start: it goes on refusing second connections of a rank.
class Gathering final {
 public:
  Gathering(boost::asio::io_context& context, ControlLinks& links, int size, Member own);

  // For the listener, about control connections.
  [[nodiscard]] Verdict admit(const Claim& claim);
  void retract(const Claim& claim);
  void welcome(Proven proven);

  /// Until all ranks have introduced themselves. At the deadline those who wait are told, too, who
  /// never came. `processor`: what was measured of this rank's, or nothing.
  core::Result<Roster> wait(core::TimePoint deadline,
                            const std::optional<core::ProcessorCosts>& processor);

 private:
  enum class Place : std::uint8_t { kFree, kProving, kTaken };

  void take(int rank, std::span<const std::byte> message);
  void introduce(int rank, Introduction introduction);
  core::Status gather(core::TimePoint deadline);
  core::Result<core::AllreducePlan> plan_allreduces(
      core::TimePoint deadline, std::span<const Member> members,
      const std::optional<core::ProcessorCosts>& processor);
  core::Error give_up(core::Error error);
  void free_place(int rank, std::string why);
  void report_missing();
  [[nodiscard]] Missing missing() const;
  [[nodiscard]] core::Error timed_out() const;
  void send_to_all(const RendezvousMessage& message);

  boost::asio::io_context& context_;
  boost::asio::steady_timer report_timer_;
  ControlLinks& links_;
  const int size_;
  std::vector<Place> places_;
  std::vector<std::optional<Member>> members_;
  std::vector<std::string> notes_;  // of ranks that came, but are not here
  int present_ = 0;
  bool all_here_ = false;
};

/// The side of every other rank: introduces itself over a connection to rank 0, and waits for the
/// roster.
core::Result<Roster> join(boost::asio::io_context& context, ControlLinks& links, Dialled rank_0,
                          const Introduction& introduction, core::TimePoint deadline);

}  // namespace fasthorovod::transport
