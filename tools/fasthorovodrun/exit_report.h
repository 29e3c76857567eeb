// How a worker ended, in numbers and in words. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "tools/fasthorovodrun/placement.h"
#include "tools/fasthorovodrun/worker.h"

namespace fasthorovod::tools {

struct Ending {
  pid_t pid = 0;
  int status = 0;                             // as wait() gives it
  long peak_kilobytes = 0;                    // of memory
  std::optional<ExecFailure> exec_failure{};  // set when the command never ran
};

/// The exit code of a launcher whose first failing worker ended like this: its own, 128 and the
/// signal, or what shells say of commands that cannot run. 0 is success.
int exit_code(const Ending& ending);

/// "rank 1 (host localhost, pid 4711) was killed by ...".
std::string describe(const Place& place, const Ending& ending, const std::string& command);

/// "SIGTERM" for 15.
std::string signal_name(int signal);

}  // namespace fasthorovod::tools
