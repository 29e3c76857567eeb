// MPI in this process: opened and initialised when a rank first needs it, kept for all worlds that
// follow, finalised when the process exits with status 0. (One that exits otherwise says so to its
// launcher by not finalising, so that the launcher ends the job instead of waiting for the others.)
//
// One thread, which lives as long as the process, makes the calls of all who use this object, so
// the library need not allow more than one. Initialising waits for all ranks and can not be broken
// off; who waits for it can.
//
// Thread: any. A forked child has none of it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/config.h"
#include "core/result.h"
#include "transport/mpi_block.h"
#include "transport/mpi_module.h"

namespace fasthorovod::transport {

class MpiProcess final : public MpiMail {
 public:
  /// `config` says what the launcher told. kUnavailable: the plug-in can not be opened, or belongs
  /// to another MPI than the launcher; or the world's rank and size are not those of MPI.
  /// kTimedOut: not all ranks initialised MPI before the deadline.
  static core::Result<MpiProcess*> enter(const core::Config& config, core::TimePoint deadline);

  /// What enter() gave this process, or null. Waits for nothing.
  static MpiProcess* entered();

  /// Whether the program may call MPI on any thread, too.
  [[nodiscard]] bool allows_all_threads() const { return mpi_.allows_all_threads(); }

  /// For one lane at a time, on its own thread; kUnavailable when MPI does not allow that. Nobody
  /// may use the mail meanwhile.
  core::Result<MpiBlocks*> blocks();
  /// Keeps what MPI has not let go of until it does.
  void keep(std::vector<MpiBlockOnItsWay> left);

  [[nodiscard]] int rank() const override { return mpi_.rank(); }
  [[nodiscard]] int size() const override { return mpi_.size(); }
  core::Status send(int peer, int tag, std::span<const std::byte> letter) override;
  core::Result<std::optional<Letter>> receive(int peer, int tag) override;

 private:
  explicit MpiProcess(Mpi& mpi);
  core::Status await_initialised(core::TimePoint deadline);
  [[nodiscard]] core::Status check_place(const core::Config& config) const;
  void run(const std::function<void()>& call);
  void serve();
  void end(int exit_status);

  Mpi& mpi_;
  const pid_t owner_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<core::Status> initialised_;
  std::deque<std::function<void()>> calls_;
  std::vector<MpiBlockOnItsWay> kept_;  // the lane's
};

}  // namespace fasthorovod::transport
