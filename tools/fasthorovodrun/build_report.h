// What --check-build prints.
#pragma once

#include <string>

namespace fasthorovod::tools {

std::string build_report();

}  // namespace fasthorovod::tools
