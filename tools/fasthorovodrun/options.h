// The launcher's command line. Pure: reads nothing but its arguments.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "tools/fasthorovodrun/host_list.h"

namespace fasthorovod::tools {

struct Options {
  bool help = false;
  bool version = false;
  bool check_build = false;
  bool verbose = false;
  int ranks = 0;
  std::vector<Host> hosts{};        // empty: this machine, as many slots as ranks
  int virtual_hosts = 0;            // 0: not asked for
  std::string virtual_rate{};       // "": no limit of the launcher's; otherwise as given, and valid
  std::string output_directory{};   // "": no files
  std::string network_interface{};  // comma separated; "": not given
  int start_timeout_s = 0;          // 0: not given
  std::vector<std::string> command{};
};

/// `arguments` are argv without the program's name. Options end at "--" or at the first argument
/// that is none: from there on everything is the command's. Errors are one sentence and name the
/// option.
core::Result<Options> parse_options(const std::vector<std::string>& arguments);

std::string help_text();

}  // namespace fasthorovod::tools
