#include "core/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace fasthorovod::core {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // row[j]: the distance of the part of `a` seen so far and the first j characters of `b`.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view nearest;
  std::size_t least = name.size() / 3 + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace fasthorovod::core
