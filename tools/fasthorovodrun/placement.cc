#include "tools/fasthorovodrun/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace fasthorovod::tools {
namespace {

core::Error too_few_slots(int ranks, int slots, const std::vector<Host>& hosts) {
  std::string found;
  for (const Host& host : hosts) {
    found += fmt::format("{}{}: {}", found.empty() ? "" : ", ", host.name, host.slots);
  }
  return {core::ErrorCode::kInvalidArgument,
          fmt::format("-np asks for {} ranks, but the hosts have {} {} ({})", ranks, slots,
                      slots == 1 ? "slot" : "slots", found)};
}

std::vector<int> ranks_of_hosts(int ranks, const std::vector<Host>& hosts) {
  std::vector<int> counts;
  for (const Host& host : hosts) {
    counts.push_back(std::min(ranks, host.slots));
    ranks -= counts.back();
  }
  return counts;
}

}  // namespace

core::Result<std::vector<Place>> place_ranks(int ranks, const std::vector<Host>& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  if (slots < ranks) return too_few_slots(ranks, slots, hosts);

  const std::vector<int> counts = ranks_of_hosts(ranks, hosts);
  std::vector<Place> places;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (int local = 0; local < counts[h]; ++local) {
      const auto has_local = [local](int count) { return count > local; };
      const auto before = counts.begin() + static_cast<std::ptrdiff_t>(h);
      places.push_back(
          {.rank = static_cast<int>(places.size()),
           .size = ranks,
           .local_rank = local,
           .local_size = counts[h],
           .cross_rank = static_cast<int>(std::count_if(counts.begin(), before, has_local)),
           .cross_size = static_cast<int>(std::ranges::count_if(counts, has_local)),
           .host = hosts[h].name});
    }
  }
  return places;
}

core::Result<std::vector<Host>> virtual_hosts(int ranks, int count) {
  if (count > ranks) {
    return core::Error{core::ErrorCode::kInvalidArgument,
                       fmt::format("--virtual-hosts {} is more than the {} {} of -np", count, ranks,
                                   ranks == 1 ? "rank" : "ranks")};
  }
  std::vector<Host> hosts;
  hosts.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    hosts.push_back({fmt::format("virtual-{}", i), ranks / count + (i < ranks % count ? 1 : 0)});
  }
  return hosts;
}

}  // namespace fasthorovod::tools
