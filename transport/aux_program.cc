#include "transport/aux_program.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "fasthorovod-aux";

fs::path folder_of_module() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_aux_program), &info) == 0) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

std::vector<fs::path> folders() {
  std::error_code ignored;
  std::vector<fs::path> all{folder_of_module(),
                            fs::read_symlink("/proc/self/exe", ignored).parent_path()};
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
