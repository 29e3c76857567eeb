#include "transport/file_descriptor.h"

#include <unistd.h>

#include "transport/fork_guard.h"

namespace fasthorovod::transport {

int FileDescriptor::release() {
  if (fd_ >= 0) forget_on_fork(fd_);
  return std::exchange(fd_, -1);
}

void FileDescriptor::reset() {
  const int fd = release();
  // Never repeated after EINTR: on Linux the number is free already, and may be somebody else's by
  // now.
  if (fd >= 0) ::close(fd);
}

}  // namespace fasthorovod::transport
