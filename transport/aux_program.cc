#include "transport/aux_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "transport/own_folders.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "fasthorovod-aux";

std::vector<fs::path> folders() {
  std::vector<fs::path> all = own_folders();
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    all.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

}  // namespace

core::Result<std::string> find_aux_program() {
  const std::vector<fs::path> all = folders();
  for (const fs::path& folder : all) {
    if (folder.empty()) continue;
    std::string candidate = (folder / kName).string();
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return core::Error{core::ErrorCode::kUnavailable,
                     fmt::format("the program {} is missing: it is neither in {} nor on PATH",
                                 kName, all.front().string())};
}

}  // namespace fasthorovod::transport
