// How many lanes (event loops) move a rank's data, where they run, and how many flows (connections)
// two ranks share: what a rank was told (a wish), and what comes of it once it is known how many
// ranks share its host (a plan).
//
// Every rank plans for all, from the wishes in the roster, so that both ends of a pair count alike.
// Pure values; any thread.
#pragma once

#include <optional>

#include "core/config.h"
#include "core/lane_costs.h"

namespace fasthorovod::core {

inline constexpr int kMostLanes = 16;        // a rank
inline constexpr int kMostAuxiliaries = 16;  // a rank
inline constexpr int kMostFlowsOfALane = 64;
inline constexpr int kMostFlows = kMostLanes * kMostFlowsOfALane;  // between two ranks
inline constexpr int kUsualFlows = 4;       // of a lane to a peer: what `auto` begins with
inline constexpr int kMostChosenFlows = 8;  // between two ranks of a lane each, by `auto`

/// What a rank was told. Nothing stands for `auto`.
struct LaneWish {
  std::optional<int> lanes = std::nullopt;        // 1 to kMostLanes, and at least the auxiliaries
  std::optional<int> auxiliaries = std::nullopt;  // 0 to kMostAuxiliaries
  std::optional<int> flows = std::nullopt;        // of a lane to a peer, 1 to kMostFlowsOfALane
  int cores = 0;                                  // that its process may use
  // Mbit/s, each way. What its link carries, 0 when that is not known; what its lane does, and what
  // an auxiliary would add.
  int link_mbit = 0;
  int lane_mbit = 0;
  int auxiliary_mbit = 0;
  DataPlane data_plane = DataPlane::kTcp;  // the same on all ranks, or they do not start

  friend bool operator==(const LaneWish&, const LaneWish&) = default;
};

inline constexpr int kMostMbit = 100'000'000;

/// `cores`: how many the process may use, unless the configuration says. What lanes carry follows
/// from `costs`.
LaneWish lane_wish(const Config& config, int cores, const LaneCosts& costs = typical_costs());

/// What a rank finds around it once all are known.
struct LaneSurroundings {
  int ranks_on_host = 1;        // itself included; they share its cores
  bool peers_elsewhere = true;  // some rank can be reached over the network only
};

/// Why a rank's plan is what it is.
struct LaneReasons {
  LaneWish wish;
  LaneSurroundings around;
};

/// What a rank does. At least one lane; at most as many auxiliaries as lanes.
struct LanePlan {
  int lanes = 1;
  int auxiliaries = 0;          // of the lanes, those that run in auxiliary processes
  int flows = 1;                // of a lane to a peer
  bool measures_flows = false;  // these are the most; how many to send on is found by trying
  DataPlane data_plane = DataPlane::kTcp;

  friend bool operator==(const LanePlan&, const LanePlan&) = default;
};

/// How many auxiliary processes a rank may have without taking cores from the program: none unless
/// its share of the host's cores is more than a rank needs for itself. Where the link's rate is
/// known, as many as fill the rank's part of it (placement_model.h), up to four; else up to two.
int spare_auxiliaries(const LaneWish& wish, int ranks_on_host);

/// `auto` means what can be spared, and none where all ranks share memory: lanes are idle there.
LanePlan plan_lanes(const LaneWish& wish, const LaneSurroundings& around);

/// How many flows of a lane to a peer a wish comes to, with so many lanes.
int flows_of_a_lane(const std::optional<int>& wish, int lanes);

/// How many flows two ranks share: as many as the one that wants more, but who was told a number
/// counts before who was not; and one for each lane. Flow k belongs on either side to lane k mod
/// (that side's lanes).
int flows_between(const LanePlan& a, const LanePlan& b);

/// What chunks are cut by: as many flows to a peer as a rank surely has good use for.
int usual_flows(const LanePlan& plan);

}  // namespace fasthorovod::core
