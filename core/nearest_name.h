// Which known name a mistyped one probably means.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace fasthorovod::core {

/// How many characters must be inserted, removed or replaced to turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known name closest to `name`, the first one among equals; "" when none is close enough to be
/// meant (more than a third of the characters differ).
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace fasthorovod::core
