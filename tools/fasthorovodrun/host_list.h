// Where ranks may run: the text of -H, parsed and checked. Pure, except that the caller passes this
// machine's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fasthorovod::tools {

struct Host {
  std::string name;  // as the user wrote it, without brackets
  int slots = 1;     // how many ranks it takes
};

/// Parses "localhost:4", "a:2,[::1]:2" or a bare "localhost" (one slot). Blanks around entries and
/// empty entries are ignored. Errors say the entry, its position (counted from 1) and what is
/// allowed.
core::Result<std::vector<Host>> parse_hosts(std::string_view text);

/// Whether `name` means the machine called `own_name`: letter case and a final dot do not matter.
bool is_local_name(std::string_view name, std::string_view own_name);

}  // namespace fasthorovod::tools
