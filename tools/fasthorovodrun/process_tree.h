// Finding processes through /proc. Thread: any.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace fasthorovod::tools {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';      // as ps shows it; Z is a zombie
  bool exiting = false;  // it runs no code of its own any more; the kernel takes it apart
};

/// What `/proc/<pid>/stat` says; false when the text makes no sense. Pure.
bool parse_process(std::string_view stat_text, Process& out);

/// Every process that is visible, zombies too.
std::vector<Process> all_processes();

/// The live processes of `processes` below `ancestor`, without those at or below one of `spared`.
/// Pure.
std::vector<Process> descendants(const std::vector<Process>& processes, pid_t ancestor,
                                 const std::vector<pid_t>& spared);

/// Whether the environment `pid` was started with holds exactly `entry` ("NAME=value"). False when
/// it cannot be read.
bool has_environment_entry(pid_t pid, std::string_view entry);

}  // namespace fasthorovod::tools
