// A core of this host as one auxiliary's own: no other auxiliary of this user gets it, of whichever
// job. A lock on a file that is named after the core, which ends with the process that holds it,
// however that ends; the file stays, and means nothing without the lock. Processes that do not see
// the same /dev/shm, as in containers of their own, do not see each other's claims.
//
// Thread: any; one claim is one owner's.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "core/result.h"
#include "transport/file_descriptor.h"

namespace fasthorovod::transport {

class CoreClaim final {
 public:
  /// Of this user.
  static std::filesystem::path usual_folder();

  /// Nothing when somebody has it. An error when `folder`, which is made if need be, can not be
  /// used or belongs to somebody else.
  static core::Result<std::optional<CoreClaim>> take(int core, const std::filesystem::path& folder);

  CoreClaim(CoreClaim&&) = default;
  CoreClaim& operator=(CoreClaim&&) = delete;
  ~CoreClaim();

 private:
  explicit CoreClaim(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace fasthorovod::transport
