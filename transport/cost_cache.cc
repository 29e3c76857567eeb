#include "transport/cost_cache.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>

#include "core/build_id.h"
#include "core/crc32c.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstWord = "fasthorovod-costs ";

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':'), line.size()));
  }
  return "unknown";
}

// Machines that share a home each have a file.
fs::path file_of(const fs::path& folder, const std::string& key) {
  return folder / fmt::format("costs-{:08x}", core::crc32c(std::as_bytes(std::span(key))));
}

std::string first_line(const std::string& key) { return fmt::format("{}{}\n", kFirstWord, key); }

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

fs::path usual_cost_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "fasthorovod";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache" / "fasthorovod";
  return {};
}

std::string machine_key() {
  utsname system{};
  ::uname(&system);
  return fmt::format("processor{}, {} {}, build {}", processor_model(),
                     static_cast<const char*>(system.sysname),
                     static_cast<const char*>(system.release), core::build_id());
}

std::optional<core::LaneCosts> load_costs(const fs::path& folder, const std::string& key) {
  if (folder.empty()) return std::nullopt;
  std::ifstream file(file_of(folder, key));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string first = first_line(key);
  if (!text.starts_with(first)) return std::nullopt;
  return core::costs_from_text(std::string_view(text).substr(first.size()));
}

core::Result<fs::path> store_costs(const core::LaneCosts& costs, const fs::path& folder,
                                   const std::string& key) {
  const std::string what = fmt::format("keeping what was measured in {}", folder.string());
  if (folder.empty()) {
    return core::Error{core::ErrorCode::kUnavailable, "there is no home to keep measurements in"};
  }
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return core::system_error(what, failed.value());
  std::string name = (folder / "new-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) return core::system_error(what, errno);
  const bool written = write_all(file, first_line(key) + core::to_text(costs));
  const fs::path goal = file_of(folder, key);
  if (::close(file) == 0 && written && ::rename(name.c_str(), goal.c_str()) == 0) return goal;
  const int code = errno;
  ::unlink(name.c_str());
  return core::system_error(what, code);
}

}  // namespace fasthorovod::transport
