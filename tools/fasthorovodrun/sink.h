// One of the launcher's own outputs: takes whole lines at once, writes them as fast as the reader
// allows, and says when so much is waiting that nobody should read more for it. Never blocks and
// never loses a byte while the reader lives. Thread: owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

class Sink final {
 public:
  /// Writes to `fd`, which stays the caller's. The descriptor's own flags are not touched: other
  /// programs share them.
  explicit Sink(int fd);

  /// Where lines go; call flush afterwards.
  [[nodiscard]] std::string& buffer() { return buffer_; }
  /// Writes what the reader takes now.
  void flush();

  [[nodiscard]] bool empty() const { return written_ == buffer_.size(); }
  [[nodiscard]] bool full() const { return buffer_.size() - written_ >= kFull; }
  /// Nothing can be written any more: what is given from now on is thrown away.
  [[nodiscard]] bool closed() const { return closed_; }
  void close();
  /// Why writing ended, as an errno value, told once: EPIPE when the reader went away. 0 when
  /// nothing is new.
  [[nodiscard]] int take_error() { return std::exchange(error_, 0); }
  /// The descriptor to wait on for room.
  [[nodiscard]] int fd() const { return own_.valid() ? own_.get() : fd_; }

 private:
  static constexpr std::size_t kFull = 1U << 20U;

  [[nodiscard]] bool has_room() const;
  [[nodiscard]] std::size_t next_size() const;

  int fd_;
  transport::FileDescriptor
      own_;               // the same file opened anew without blocking, where that is possible
  bool is_file_ = false;  // always has room, and cannot be opened anew without losing the offset
  std::string buffer_;
  std::size_t written_ = 0;
  bool closed_ = false;
  int error_ = 0;
};

/// Whether two descriptors lead to the same pipe, terminal or file.
bool same_target(int a, int b);

}  // namespace fasthorovod::tools
