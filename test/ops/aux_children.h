// The auxiliary processes that a process started, as the system lists them.
#pragma once

#include <sys/types.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace fasthorovod::ops::testing {

/// The folder of the built program goes on PATH, where it is looked for last.
inline void put_auxiliary_on_path() {
  static const std::string path = std::string(FASTHOROVOD_AUX_FOLDER) + ":" + std::getenv("PATH");
  setenv("PATH", path.c_str(), 1);
}

/// Those of `parent` that have not ended.
inline std::set<pid_t> auxiliaries_of(pid_t parent) {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(number[0])) == 0) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string name;
    std::string state;
    pid_t its_parent = 0;
    if (!(stat >> name >> name >> state >> its_parent)) continue;
    if (name == "(fasthorovod-aux)" && its_parent == parent && state != "Z") {
      found.insert(std::stoi(number));
    }
  }
  return found;
}

}  // namespace fasthorovod::ops::testing
