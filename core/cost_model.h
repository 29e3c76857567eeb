// What an all-reduce between ranks that share no memory would take, by algorithm, and which one is
// used for how many bytes.
//
// A model with few figures: an all-reduce takes its hops, and then what is slower of the bytes on
// the wire and the work of the processors on them. It is there to compare algorithms; what it
// predicts is right within a factor, not a percentage.
//
// Rank 0 makes the plan of a world once, at its start, and gives it to all ranks. From then on a
// choice depends on nothing but the plan, the bytes and the number of ranks, so all choose alike
// without a word. Pure values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fasthorovod::core {

/// Wire values: only append.
enum class AllreduceAlgorithm : std::uint8_t { kRing = 0, kTwoHop = 1, kOneHop = 2 };

inline constexpr int kAllreduceAlgorithms = 3;

/// The name in the table of algorithms, such as "ring-allreduce".
std::string_view to_string(AllreduceAlgorithm algorithm);

/// All names, in the order of the enumerators.
std::span<const std::string_view> allreduce_algorithm_names();

std::optional<AllreduceAlgorithm> parse_allreduce_algorithm(std::string_view name);

/// What the model counts with. These values are those of a world that measures nothing: a
/// data centre's network of 10 Gbit/s and a processor of the last ten years.
struct CostFigures {
  double hop_seconds = 30e-6;       // from a send to the sends that wait for it elsewhere
  double flow_rate = 1.25e9;        // bytes a second of one flow
  double rank_rate = 1.25e9;        // of all flows of a rank together, each way
  double moved_seconds = 0.3e-9;    // of a processor, a byte sent or received
  double reduced_seconds = 0.1e-9;  // of a processor, a byte added to another
  double kept_seconds = 0.1e-9;     // of a processor, a byte put aside until it is added
  double message_seconds = 3e-6;    // of a processor, a chunk sent or received

  friend bool operator==(const CostFigures&, const CostFigures&) = default;
};

/// What a processor takes for the simplest work, measured by whoever knows how.
struct ProcessorCosts {
  double copied_seconds = 0;   // a byte copied
  double reduced_seconds = 0;  // a byte added to another

  friend bool operator==(const ProcessorCosts&, const ProcessorCosts&) = default;
};

/// What a message costs between two hosts, measured at the start.
struct HopCosts {
  double hop_seconds = 0;      // half a round trip
  double message_seconds = 0;  // of a processor, to send one or to receive one
  double rate = 0;             // bytes a second of one connection; 0: not known

  friend bool operator==(const HopCosts&, const HopCosts&) = default;
};

/// The stated figures, but for those that were measured. That so many flows are faster than one
/// connection is hoped, not measured.
CostFigures measured_figures(const HopCosts& hop, const ProcessorCosts& processor, int flows);

/// Where the ranks are.
struct CostPlacement {
  int flows = 1;              // between two ranks
  double cores_a_rank = 1.0;  // the least that any rank has; below 1 ranks share cores

  friend bool operator==(const CostPlacement&, const CostPlacement&) = default;
};

/// Seconds; 0 among fewer than two ranks.
double predict(AllreduceAlgorithm algorithm, std::uint64_t bytes, int ranks,
               const CostFigures& figures, const CostPlacement& placement);

/// Up to how many bytes, inclusive, which algorithm is used; the ring beyond both.
struct AllreduceLimits {
  std::uint64_t one_hop = 0;
  std::uint64_t two_hop = 0;  // from where one hop ends

  friend bool operator==(const AllreduceLimits&, const AllreduceLimits&) = default;
};

/// More ranks than these would need many connections for little: they use the ring.
inline constexpr int kMostRanksInAHop = 16;

/// The limits at which predictions cross, as powers of two: nearby figures give the same ones.
AllreduceLimits allreduce_limits(int ranks, const CostFigures& figures,
                                 const CostPlacement& placement);

/// What a rank was told. The same on all ranks, or they do not start.
struct AllreduceWish {
  std::optional<AllreduceAlgorithm> forced{};  // nothing: auto
  bool deterministic = false;  // limits are those of the stated figures, whatever is measured

  friend bool operator==(const AllreduceWish&, const AllreduceWish&) = default;
};

/// What all ranks of a world choose by.
struct AllreducePlan {
  std::optional<AllreduceAlgorithm> forced{};  // for all sizes, by FASTHOROVOD_ALLREDUCE
  bool measured = false;  // hops and processors, at the start; else all figures are the stated ones
  CostFigures figures{};
  CostPlacement placement{};
  std::vector<AllreduceLimits> limits{};  // of groups of 2, 3, ... ranks; larger ones use the ring

  /// The same on all ranks of a group of so many.
  [[nodiscard]] AllreduceAlgorithm choose(std::uint64_t bytes, int ranks) const;

  friend bool operator==(const AllreducePlan&, const AllreducePlan&) = default;
};

/// For people, of a world of so many ranks: what is used for which size, and the figures behind it.
std::string describe(const AllreducePlan& plan, int ranks);

/// The plan that these figures imply, for groups of up to `ranks`.
AllreducePlan plan_allreduce(int ranks, const CostFigures& figures, const CostPlacement& placement);

}  // namespace fasthorovod::core
