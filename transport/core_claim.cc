#include "transport/core_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "transport/fork_guard.h"

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorCode;

// Anybody may have made a folder of that name where everybody may.
core::Result<FileDescriptor> open_own(const fs::path& folder) {
  const std::string what = fmt::format("the folder {} for claims of cores", folder.string());
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return core::system_error(what, errno);
  }
  FileDescriptor opened(::open(folder.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
  struct stat is {};
  if (!opened.valid() || ::fstat(opened.get(), &is) != 0) return core::system_error(what, errno);
  if (is.st_uid != ::geteuid() || (is.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{ErrorCode::kUnavailable, what + " can be written by other users"};
  }
  return opened;
}

}  // namespace

fs::path CoreClaim::usual_folder() { return fmt::format("/dev/shm/fasthorovod-{}", ::geteuid()); }

core::Result<std::optional<CoreClaim>> CoreClaim::take(int core, const fs::path& folder) {
  const auto opened = open_own(folder);
  if (!opened) return opened.error();
  const std::string name = fmt::format("core-{}", core);
  FileDescriptor file(::openat(opened->get(), name.c_str(),
                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file.valid()) return core::system_error("claiming a core", errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<CoreClaim>();
    return core::system_error("claiming a core", errno);
  }
  drop_on_fork(file);  // a child of the rank would hold the lock beyond its end
  return std::optional<CoreClaim>(CoreClaim(std::move(file)));
}

// Also for a child that was made before the descriptor was guarded.
CoreClaim::~CoreClaim() {
  if (file_.valid()) ::flock(file_.get(), LOCK_UN);
}

}  // namespace fasthorovod::transport
