// Lists of processors as the system writes them: "0-3,8". Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fasthorovod::core {

inline constexpr int kMostProcessors = 1024;  // as many as the system's set of processors holds

/// In the order written, each number below kMostProcessors and given once; nothing when it is
/// anything else, or empty.
std::optional<std::vector<int>> parse_processor_list(std::string_view text);

/// "0-3,8" for ascending numbers; runs only where they follow each other.
std::string to_processor_list(std::span<const int> processors);

}  // namespace fasthorovod::core
