#include "core/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fasthorovod::core {
namespace {

constexpr std::array<std::string_view, kAllreduceAlgorithms> kNames = {
    "ring-allreduce", "two-hop-allreduce", "one-hop-allreduce"};

// A byte that is sent or received costs the kernel about as much as so many copies of it.
constexpr double kCopiesAMove = 3;

// Chunks, about as they are cut.
constexpr double kSmallChunk = 32U << 10;
constexpr double kMiddleChunk = 64U << 10;
constexpr double kLargeChunk = 256U << 10;
constexpr double kChunksAFlow = 4;

// The ring keeps nothing, and no rank sends to one that others send to: it is preferred where
// there is little between the two.
constexpr double kWorthIt = 0.95;

// Where nobody has measured the network, nothing sends more than its fair share beyond these: bytes
// that a rank sends in one hop, and bytes that it keeps in two.
constexpr std::uint64_t kMostInOneHop = 256U << 10;
constexpr std::uint64_t kMostInTwoHops = 64U << 20;

// What one rank does in an all-reduce.
struct Work {
  double hops = 0;
  double peers = 1;     // that it sends to
  double sent = 0;      // bytes
  double reduced = 0;   // bytes
  double kept = 0;      // bytes
  double messages = 0;  // that it sends
};

// How many chunks a rank cuts what it sends one other rank at once.
double chunks(double part, double peers, int flows) {
  if (peers > 1) {
    const double share = part / std::ceil(flows / peers);
    return std::max(1.0, part / std::clamp(share, kMiddleChunk, kLargeChunk));
  }
  const double share = part / flows;
  const double chunk = share <= kMiddleChunk
                           ? std::max(share, kSmallChunk)
                           : std::clamp(share / kChunksAFlow, kMiddleChunk, kLargeChunk);
  return std::max(1.0, part / chunk);
}

Work work_of(AllreduceAlgorithm algorithm, double bytes, double ranks, int flows) {
  const double others = ranks - 1;
  const double share = bytes / ranks;
  switch (algorithm) {
    case AllreduceAlgorithm::kOneHop:
      return {.hops = 1,
              .peers = others,
              .sent = others * bytes,
              .reduced = others * bytes,
              .kept = others * bytes,
              .messages = others * chunks(bytes, others, flows)};
    case AllreduceAlgorithm::kTwoHop:
      return {.hops = 2,
              .peers = others,
              .sent = 2 * others * share,
              .reduced = others * share,
              .kept = others * share,
              .messages = 2 * others * chunks(share, others, flows)};
    case AllreduceAlgorithm::kRing:
      break;
  }
  return {.hops = 2 * others,
          .peers = 1,
          .sent = 2 * others * share,
          .reduced = others * share,
          .messages = 2 * others * chunks(share, 1, flows)};
}

// The first of the sizes 2^6, 2^7, ... from which on a is not faster than b; at most `most`.
template <typename Faster>
std::uint64_t last_size(std::uint64_t most, Faster is_faster) {
  std::uint64_t last = 0;
  for (std::uint64_t bytes = 64; bytes <= most && is_faster(bytes); bytes *= 2) last = bytes;
  return last;
}

}  // namespace

std::string_view to_string(AllreduceAlgorithm algorithm) {
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::span<const std::string_view> allreduce_algorithm_names() { return kNames; }

std::optional<AllreduceAlgorithm> parse_allreduce_algorithm(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<AllreduceAlgorithm>(found - kNames.begin());
}

CostFigures measured_figures(const HopCosts& hop, const ProcessorCosts& processor, int flows) {
  CostFigures figures;
  figures.hop_seconds = hop.hop_seconds;
  figures.message_seconds = hop.message_seconds;
  if (hop.rate > 0) {
    figures.flow_rate = hop.rate;
    figures.rank_rate = hop.rate * flows;
  }
  figures.moved_seconds = kCopiesAMove * processor.copied_seconds;
  figures.reduced_seconds = processor.reduced_seconds;
  figures.kept_seconds = processor.copied_seconds;
  return figures;
}

double predict(AllreduceAlgorithm algorithm, std::uint64_t bytes, int ranks,
               const CostFigures& figures, const CostPlacement& placement) {
  if (ranks < 2) return 0;
  const Work work = work_of(algorithm, static_cast<double>(bytes), ranks, placement.flows);
  const double wire = std::max(work.sent / figures.rank_rate,
                               work.sent / work.peers / (figures.flow_rate * placement.flows));
  // As many bytes and messages come as leave.
  const double processor =
      2 * work.sent * figures.moved_seconds + work.reduced * figures.reduced_seconds +
      work.kept * figures.kept_seconds + 2 * work.messages * figures.message_seconds;
  const double shared = std::max(1.0, 1.0 / placement.cores_a_rank);
  return work.hops * figures.hop_seconds + std::max(wire, processor * shared);
}

AllreduceLimits allreduce_limits(int ranks, const CostFigures& figures,
                                 const CostPlacement& placement) {
  if (ranks < 2 || ranks > kMostRanksInAHop) return {};
  const auto time = [&](AllreduceAlgorithm algorithm, std::uint64_t bytes) {
    return predict(algorithm, bytes, ranks, figures, placement);
  };
  const auto two_hop_wins = [&](std::uint64_t bytes) {
    return time(AllreduceAlgorithm::kTwoHop, bytes) <
           kWorthIt * time(AllreduceAlgorithm::kRing, bytes);
  };
  const auto one_hop_wins = [&](std::uint64_t bytes) {
    return time(AllreduceAlgorithm::kOneHop, bytes) <
           std::min(time(AllreduceAlgorithm::kTwoHop, bytes),
                    time(AllreduceAlgorithm::kRing, bytes));
  };
  const auto others = static_cast<std::uint64_t>(ranks - 1);
  return {.one_hop = last_size(kMostInOneHop / others, one_hop_wins),
          .two_hop = last_size(kMostInTwoHops, two_hop_wins)};
}

AllreduceAlgorithm AllreducePlan::choose(std::uint64_t bytes, int ranks) const {
  if (forced) return *forced;
  const auto index = static_cast<std::size_t>(ranks - 2);
  if (ranks < 2 || index >= limits.size()) return AllreduceAlgorithm::kRing;
  if (bytes <= limits[index].one_hop) return AllreduceAlgorithm::kOneHop;
  return bytes <= limits[index].two_hop ? AllreduceAlgorithm::kTwoHop : AllreduceAlgorithm::kRing;
}

std::string describe(const AllreducePlan& plan, int ranks) {
  if (plan.forced) return fmt::format("{}, as FASTHOROVOD_ALLREDUCE says", to_string(*plan.forced));
  const auto index = static_cast<std::size_t>(ranks - 2);
  const AllreduceLimits limits =
      ranks < 2 || index >= plan.limits.size() ? AllreduceLimits{} : plan.limits[index];
  const CostFigures& figures = plan.figures;
  return fmt::format(
      "one hop up to {} bytes, two hops up to {}, beyond that the ring ({}: {:.1f} us a hop, "
      "{:.0f} "
      "MB/s, {:.1f} us of processor a message, {:.3f} ns a byte moved, {:.3f} added, {:.3f} kept)",
      limits.one_hop, limits.two_hop, plan.measured ? "measured" : "stated",
      1e6 * figures.hop_seconds, 1e-6 * figures.rank_rate, 1e6 * figures.message_seconds,
      1e9 * figures.moved_seconds, 1e9 * figures.reduced_seconds, 1e9 * figures.kept_seconds);
}

AllreducePlan plan_allreduce(int ranks, const CostFigures& figures,
                             const CostPlacement& placement) {
  AllreducePlan plan{.figures = figures, .placement = placement};
  for (int size = 2; size <= std::min(ranks, kMostRanksInAHop); ++size) {
    plan.limits.push_back(allreduce_limits(size, figures, placement));
  }
  return plan;
}

}  // namespace fasthorovod::core
