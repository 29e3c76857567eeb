// Words as the exec functions and posix_spawn take them.
#pragma once

#include <string>
#include <vector>

namespace fasthorovod::tools {

/// A pointer to each text, and a null behind them. Valid as long as the texts are.
std::vector<char*> pointers(const std::vector<std::string>& texts);

}  // namespace fasthorovod::tools
