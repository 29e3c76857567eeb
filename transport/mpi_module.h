// What the plug-in fasthorovod-mpi offers: MPI behind an interface, so that nothing else is linked
// with an MPI library and one build of this one loads on every host.
//
// The plug-in exports one function, named kMpiModuleSymbol, of type MpiModuleFunction.
#pragma once

#include <string>

#include "core/result.h"
#include "transport/mpi_blocks.h"
#include "transport/mpi_mail.h"
#include "transport/plugin.h"

namespace fasthorovod::transport {

/// MPI in this process. Thread: owner, for all calls but library(), allows_all_threads() and, where
/// check_threads() allows it, those of MpiBlocks; none waits for another rank but initialise() and
/// finalise().
class Mpi : public MpiMail, public MpiBlocks {
 public:
  /// The library's words about itself, on one line. At any time.
  [[nodiscard]] virtual std::string library() const = 0;

  /// Initialises MPI, unless the program has done so (as mpi4py does), and takes a communicator of
  /// its own. Returns once all ranks have called it. Once.
  virtual core::Status initialise() = 0;

  /// Whether blocks may be moved on another thread than the owner's, though not at the same time:
  /// kUnavailable, saying what is missing. (When the program initialised MPI it may call it at any
  /// time, which takes more.)
  [[nodiscard]] virtual core::Status check_threads() const = 0;

  /// Whether threads of the program may call MPI, too (MPI_THREAD_MULTIPLE). Once initialised.
  [[nodiscard]] virtual bool allows_all_threads() const = 0;

  /// Finalises MPI if initialise() was the one to initialise it; returns once all ranks do.
  virtual void finalise() = 0;
};

struct MpiModule {
  PluginBuild build;
  Mpi& (*mpi)();
};

using MpiModuleFunction = const MpiModule*();
inline constexpr const char* kMpiModuleSymbol = "fasthorovod_mpi_module";

}  // namespace fasthorovod::transport
