// The job secret in a file without a name: a sealed memfd of this process, which workers of the
// same user open through /proc. It goes with the process, however that ends.
#pragma once

#include <string>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::tools {

class SecretFile final {
 public:
  /// Writes `secret` and seals the file against every change.
  static core::Result<SecretFile> create(const std::string& secret);

  /// "/proc/<pid>/fd/<n>": valid in other processes while this one lives.
  [[nodiscard]] std::string path() const;

 private:
  explicit SecretFile(transport::FileDescriptor file) : file_(std::move(file)) {}

  transport::FileDescriptor file_;
};

}  // namespace fasthorovod::tools
