// One auxiliary process, as the rank that started it sees it. Owners: the pool, which waits for its
// end, and whoever has leased it.
//
// It dies with the rank: the system kills it when the thread that started it ends, and it ends by
// itself when its socket does. A forked child of the rank holds none of this (fork_guard.h).
//
// Thread: any.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "transport/aux_socket.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

class AuxProcess final {
 public:
  /// Starts `program`. The calling thread must live as long as the process is needed.
  static core::Result<std::shared_ptr<AuxProcess>> start(const std::string& program);

  AuxProcess(pid_t pid, FileDescriptor pidfd, FileDescriptor socket);

  /// Waits until the program runs. An error when it does not, or is of another build.
  [[nodiscard]] core::Status await_hello(const std::string& program,
                                         std::chrono::milliseconds limit) const;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const AuxSocket& socket() const { return socket_; }

  /// Makes it run on these processors; on none: where it was started, as the system likes. While it
  /// serves nobody, by whom it is leased. An error when it does not do so.
  core::Status bind(std::span<const int> processors);

  /// Readable when the process has ended.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }

  void kill() const;
  /// Waits until it has ended.
  void await_end(std::chrono::milliseconds limit) const;

  /// Who hears how it ended ("was killed by signal 9"), on the pool's thread, or at once when it
  /// has ended already. Must not block. After the call nobody else hears.
  void on_end(std::function<void(const std::string& how)> hear);
  [[nodiscard]] bool ended() const;

  /// The pool's: the process has ended; takes its exit status.
  void reap();

 private:
  const pid_t pid_;
  const FileDescriptor pidfd_;
  const AuxSocket socket_;
  bool bound_ = false;  // by bind(); who leases it

  mutable std::mutex mutex_;  // held while `hear_` runs
  std::optional<std::string> how_;
  std::function<void(const std::string&)> hear_;
};

using AuxProcessPtr = std::shared_ptr<AuxProcess>;

}  // namespace fasthorovod::transport
