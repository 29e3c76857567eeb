// What a worker finds in its environment: the launcher's own, byte for byte, with the job's names
// put over it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/fasthorovodrun/options.h"
#include "tools/fasthorovodrun/placement.h"

namespace fasthorovod::tools {

/// What all ranks of a job share.
struct JobContact {
  std::string store;        // endpoint of the launcher's store
  std::string secret_file;  // path of the file with the secret
  std::string job;          // 32 hexadecimal digits
};

/// Name and value pairs that replace or join what is inherited.
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// The names a rank gets from its place, the job and the options.
Overrides rank_variables(const Place& place, const JobContact& contact, const Options& options);

/// `inherited` ("NAME=value", or anything else a parent put there) without what `overrides` names,
/// then the overrides. FASTHOROVOD_RENDEZVOUS, another way of meeting, is left out as well.
std::vector<std::string> worker_environment(const std::vector<std::string>& inherited,
                                            const Overrides& overrides);

}  // namespace fasthorovod::tools
