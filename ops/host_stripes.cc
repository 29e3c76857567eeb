#include "ops/host_stripes.h"

namespace fasthorovod::ops {
namespace {

template <typename Predicate>
std::vector<int> stripes_of(const HostLayout& layout, Predicate predicate) {
  std::vector<int> stripes;
  for (int i = 1; i <= layout.stripes; ++i) {
    const int stripe = (layout.place + i) % layout.stripes;
    if (predicate(stripe)) stripes.push_back(stripe);
  }
  return stripes;
}

}  // namespace

std::vector<int> stripes_to_copy_in(const HostLayout& layout) {
  return stripes_of(layout, [&](int stripe) { return layout.is_small() || !layout.owns(stripe); });
}

std::vector<int> stripes_to_reduce(const HostLayout& layout) {
  return stripes_of(layout, [&](int stripe) { return layout.is_small() || layout.owns(stripe); });
}

std::vector<int> stripes_to_copy_out(const HostLayout& layout) {
  return stripes_of(layout, [&](int stripe) {
    return !layout.is_small() && (layout.crosses() || !layout.owns(stripe));
  });
}

}  // namespace fasthorovod::ops
