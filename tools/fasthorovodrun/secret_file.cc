#include "tools/fasthorovodrun/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace fasthorovod::tools {

core::Result<SecretFile> SecretFile::create(const std::string& secret) {
  transport::FileDescriptor file(
      memfd_create("fasthorovod-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return core::system_error("cannot make a file for the job secret", errno);
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  const auto size = static_cast<ssize_t>(secret.size());
  if (fchmod(file.get(), S_IRUSR) != 0 || write(file.get(), secret.data(), secret.size()) != size ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return core::system_error("cannot write the job secret", errno);
  }
  return SecretFile(std::move(file));
}

std::string SecretFile::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), file_.get());
}

}  // namespace fasthorovod::tools
