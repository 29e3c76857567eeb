#include "tools/fasthorovodrun/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace fasthorovod::tools {

Sink::Sink(int fd) : fd_(fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    closed_ = true;
    return;
  }
  const bool waits = S_ISFIFO(status.st_mode) || isatty(fd) != 0;
  is_file_ = S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && !waits);
  if (!waits) return;
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  own_ =
      transport::FileDescriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

void Sink::flush() {
  while (!closed_ && !empty() && has_room()) {
    const ssize_t put = write(fd(), buffer_.data() + written_, next_size());
    if (put >= 0) {
      written_ += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      close();
    }
  }
  if (closed_ || empty()) {
    buffer_.clear();
    written_ = 0;
  } else if (written_ >= kFull) {
    buffer_.erase(0, written_);
    written_ = 0;
  }
}

void Sink::close() {
  closed_ = true;
  buffer_.clear();
  written_ = 0;
}

bool Sink::has_room() const {
  if (own_.valid() || is_file_) return true;
  pollfd request{fd_, POLLOUT, 0};
  return poll(&request, 1, 0) > 0;
}

std::size_t Sink::next_size() const {
  const std::size_t waiting = buffer_.size() - written_;
  // What poll promises on a descriptor that blocks.
  return own_.valid() || is_file_ ? waiting : std::min<std::size_t>(waiting, PIPE_BUF);
}

bool same_target(int a, int b) {
  struct stat first {};
  struct stat second {};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace fasthorovod::tools
