// A child process that is spoken to line by line, over its standard input and output. Its standard
// error is ours.
//
// Thread: owner. The child is killed on destruction; it also sees the end of its input when this
// process dies. Start it while this process has no secrets open that the child should not inherit:
// descriptors are passed on unless they are close-on-exec.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

class LineProcess final {
 public:
  /// The program is looked for on PATH. Errors say which one could not be started.
  static core::Result<std::unique_ptr<LineProcess>> start(const std::vector<std::string>& command);

  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  /// Sends a line; `line` has no end.
  core::Status tell(std::string_view line);

  /// Waits for the next line, which comes without its end. kUnavailable: the child has ended.
  core::Result<std::string> hear();

 private:
  LineProcess(std::string program, transport::FileDescriptor socket, pid_t pid);
  [[nodiscard]] core::Error ended() const;

  const std::string program_;
  transport::FileDescriptor socket_;
  const pid_t pid_;
  std::string heard_;  // what came after the last line
};

}  // namespace fasthorovod::tools
