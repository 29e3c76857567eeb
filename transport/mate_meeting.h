// How a rank meets its mates, the other ranks of its host: it opens a door before the rendezvous,
// learns from the roster who they are, and exchanges arenas with them (mate_exchange.h); all ranks
// of the world settle that (settling.h).
//
// Thread: owner (the io_context's). meet() and give_up() run the context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "transport/control_links.h"
#include "transport/mate_addresses.h"
#include "transport/mate_exchange.h"
#include "transport/member.h"
#include "transport/refusals.h"
#include "transport/secret.h"

namespace fasthorovod::transport {

class MateMeeting final {
 public:
  MateMeeting(boost::asio::io_context& context, ControlLinks& links, const Secret& secret,
              RefusalLog& refusals)
      : context_(context), links_(links), secret_(secret), refusals_(refusals) {}

  /// Begins to listen; says under which name.
  core::Result<std::string> open_door();

  /// Who is there. Closes the door when no mate is.
  void learn(const core::World& world, std::span<const Member> members);

  // As ControlPlane says. `limit`: the start limit.
  core::Result<std::vector<Mate>> meet(const Arena& own, std::chrono::milliseconds limit);
  void give_up(const core::Error& error);

 private:
  core::Status exchange(MateExchange& exchange, std::chrono::milliseconds limit);

  boost::asio::io_context& context_;
  ControlLinks& links_;
  const Secret& secret_;
  RefusalLog& refusals_;
  core::World world_;
  std::optional<MateDoor> door_;
  std::vector<MateAddress> mates_;
  bool somebody_has_mates_ = false;
  core::Status hosts_are_sound_;
};

}  // namespace fasthorovod::transport
