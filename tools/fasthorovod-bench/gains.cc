#include "tools/fasthorovod-bench/gains.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/lane_plan.h"
#include "core/placement_model.h"

namespace fasthorovod::tools {
namespace {

constexpr int kCores = 16;
constexpr std::array kLinks{10, 25, 100};  // Gbit/s
constexpr std::array kRanks{1, 2, 4, 8};
constexpr std::array kAuxiliaries{0, 1, 2, 4};
constexpr double kBytesInGbit = 125e6;

double host_gbit(const core::LaneCosts& costs, const core::RankSite& site, int link,
                 int auxiliaries) {
  const core::Goodput host = site.ranks * core::rank_goodput(costs, site, auxiliaries);
  return std::min(host / kBytesInGbit, static_cast<double>(link));
}

int chosen(const core::LaneCosts& costs, int link, int ranks) {
  core::LaneWish wish = core::lane_wish({}, kCores, costs);
  wish.link_mbit = link * 1000;
  return core::spare_auxiliaries(wish, ranks);
}

}  // namespace

std::string gains_table(const core::LaneCosts& costs) {
  std::string text =
      "| link, Gbit/s | ranks a host | tensors | 0 | 1 | 2 | 4 | auto |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const int link : kLinks) {
    for (const int ranks : kRanks) {
      for (const bool in_arena : {true, false}) {
        const core::RankSite site{.cores = kCores, .ranks = ranks, .in_arena = in_arena};
        text += fmt::format("| {} | {} | {} |", link, ranks, in_arena ? "arena" : "ordinary");
        for (const int auxiliaries : kAuxiliaries) {
          text += fmt::format(" {:.1f} |", host_gbit(costs, site, link, auxiliaries));
        }
        text += fmt::format(" {} |\n", chosen(costs, link, ranks));
      }
    }
  }
  return text;
}

}  // namespace fasthorovod::tools
