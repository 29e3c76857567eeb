// A rank's auxiliary processes while its engine lives.
//
// Those that were asked for are leased before the ranks meet: a rank that can not have them says so
// before others count on it. What `auto` means is known only afterwards; its lanes are threads of
// the rank where they can not be had. Thread: owner.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/aux_cores.h"
#include "core/config.h"
#include "core/lane_plan.h"
#include "core/log.h"
#include "core/result.h"
#include "ops/shared_memory.h"
#include "transport/aux_process.h"
#include "transport/aux_server.h"
#include "transport/chunk_work.h"
#include "transport/control_plane.h"
#include "transport/core_claim.h"
#include "transport/lane_place.h"
#include "transport/peer_rates.h"

namespace fasthorovod::ops {

class Auxiliaries final {
 public:
  struct Hooks {
    std::function<bool()> busy;  // operations are pending; cheap, any thread
    /// How the auxiliary of that index ended ("was killed by signal 9"). Any thread; must not
    /// block.
    std::function<void(std::size_t index, const std::string& how)> lost;
  };

  /// As many as the settings ask for; null when they ask for none, or leave the choice.
  /// kUnavailable when they can not be had, kInvalidArgument when they can not run where they are
  /// to.
  static core::Result<std::unique_ptr<Auxiliaries>> lease(const core::Config& config);
  /// As many as the plan chose; null when those are none, or can not be had, which is logged.
  static std::unique_ptr<Auxiliaries> lease_chosen(const core::LanePlan& plan, core::Log& log);
  ~Auxiliaries();
  Auxiliaries(const Auxiliaries&) = delete;
  Auxiliaries& operator=(const Auxiliaries&) = delete;

  /// Puts them on cores of their own, as far as the setting and the host allow. Once, before
  /// start_lanes().
  void pin(const core::AuxPinning& pinning, const transport::ControlPlane& control, core::Log& log);

  /// What a rank's lanes share.
  struct Home {
    SharedMemory& memory;  // what lies in it is not copied for them
    transport::ChunkWork& work;
    std::shared_ptr<transport::RateBoard> rates;
  };

  /// Adds a lane for each. Once; `home` and this outlive them, and what the hooks refer to outlives
  /// stop_serving().
  core::Status start_lanes(const Home& home, Hooks hooks,
                           std::vector<std::unique_ptr<transport::LanePlace>>& lanes);

  /// From now on none of the hooks is called. Their lanes are gone.
  void stop_serving() { server_.reset(); }
  /// After start_lanes(): what the board's hooks use is there now; see AuxServer::publish().
  void publish() { server_->publish(); }

 private:
  /// Null for none.
  static core::Result<std::unique_ptr<Auxiliaries>> take(int count);
  explicit Auxiliaries(std::vector<transport::AuxProcessPtr> processes);

  std::vector<transport::CoreClaim> claims_;    // of the cores they run on
  std::vector<transport::AuxProcessPtr> idle_;  // leased, without a lane
  std::unique_ptr<transport::AuxServer> server_;
};

}  // namespace fasthorovod::ops
