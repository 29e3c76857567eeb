// Message sizes as users write them: "4K", "256M", "1G" (powers of 1024), and the steps between two
// of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fasthorovod::tools {

/// Bytes of "65536", "64K", "1.5M", "2G". An error says what was given and what is allowed.
core::Result<std::uint64_t> parse_size(std::string_view text);

/// "64K", "1M", or plain bytes when no unit divides it.
std::string format_size(std::uint64_t bytes);

/// first, first * factor, ... up to and including last. The factor is at least 2.
core::Result<std::vector<std::uint64_t>> size_steps(std::uint64_t first, std::uint64_t last,
                                                    std::uint64_t factor);

/// first, first + increment, ... up to and including last: at most 100000 sizes. The increment is
/// at least 1.
core::Result<std::vector<std::uint64_t>> size_increments(std::uint64_t first, std::uint64_t last,
                                                         std::uint64_t increment);

}  // namespace fasthorovod::tools
