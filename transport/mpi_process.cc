#include "transport/mpi_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "transport/mpi_plugin.h"
#include "transport/own_folders.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

std::atomic<MpiProcess*> in_use = nullptr;

core::Result<Mpi*> open(const core::Config& config) {
  auto mpi = open_mpi_plugin(own_folders());
  if (mpi) return mpi;
  Error error = std::move(mpi).error();
  error.message += fmt::format(
      ". {} started this process as rank {} of {}; without the plug-in start ranks with "
      "fasthorovodrun, or by hand with FASTHOROVOD_RANK, FASTHOROVOD_SIZE, FASTHOROVOD_RENDEZVOUS "
      "and FASTHOROVOD_SECRET_FILE",
      config.mpi_launcher, config.rank, config.size);
  return error;
}

}  // namespace

core::Result<MpiProcess*> MpiProcess::enter(const core::Config& config, core::TimePoint deadline) {
  // Never deleted: its thread may be inside MPI until the process ends.
  static std::mutex mutex;
  static MpiProcess* process = nullptr;
  if (config.mpi_launcher.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "FASTHOROVOD_DATA_PLANE=\"mpi\" needs ranks that an MPI launcher such as mpirun "
                 "started, and no rank, size or place to meet in FASTHOROVOD_* or HOROVOD_*"};
  }
  const std::lock_guard lock(mutex);
  if (process == nullptr) {
    auto mpi = open(config);
    if (!mpi) return std::move(mpi).error();
    process = new MpiProcess(**mpi);
  }
  if (process->owner_ != ::getpid()) {
    return Error{ErrorCode::kUnavailable,
                 "the process that forked this one uses MPI, so this one can not"};
  }
  if (auto status = process->await_initialised(deadline); !status) return std::move(status).error();
  if (auto status = process->check_place(config); !status) return std::move(status).error();
  in_use = process;
  return process;
}

MpiProcess* MpiProcess::entered() {
  MpiProcess* const process = in_use;
  return process != nullptr && process->owner_ == ::getpid() ? process : nullptr;
}

MpiProcess::MpiProcess(Mpi& mpi) : mpi_(mpi), owner_(::getpid()) {
  std::thread([this] { serve(); }).detach();
  ::on_exit([](int status, void* self) { static_cast<MpiProcess*>(self)->end(status); }, this);
}

core::Status MpiProcess::await_initialised(core::TimePoint deadline) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, deadline, [this] { return initialised_.has_value(); })) {
    return *initialised_;
  }
  return Error{ErrorCode::kTimedOut,
               fmt::format("MPI ({}) was not initialised before the time limit: some rank has not "
                           "come as far, or can not be reached",
                           mpi_.library())};
}

core::Status MpiProcess::check_place(const core::Config& config) const {
  if (rank() == config.rank && size() == config.size) return {};
  if (size() > 1) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("rank {} of a world of {} is rank {} of {} in MPI; MPI serves worlds in "
                    "which all its ranks are, with the same numbers",
                    config.rank, config.size, rank(), size())};
  }
  return Error{
      ErrorCode::kUnavailable,
      fmt::format("{} says that this is rank {} of {}, but MPI ({}) that it is rank {} of {}: the "
                  "plug-in fasthorovod-mpi was built for another MPI than the launcher's; build it "
                  "with that one's compiler (cmake -DMPI_CXX_COMPILER=...), or use its launcher",
                  config.mpi_launcher, config.rank, config.size, mpi_.library(), rank(), size())};
}

core::Result<MpiBlocks*> MpiProcess::blocks() {
  if (auto allowed = mpi_.check_threads(); !allowed) return std::move(allowed).error();
  return &mpi_;
}

void MpiProcess::keep(std::vector<MpiBlockOnItsWay> left) {
  for (MpiBlockOnItsWay& each : left) kept_.push_back(std::move(each));
  std::erase_if(kept_, [](MpiBlockOnItsWay& each) {
    const auto done = each.transfer->done();
    return !done || *done;
  });
}

core::Status MpiProcess::send(int peer, int tag, std::span<const std::byte> letter) {
  core::Status sent;
  run([&] { sent = mpi_.send(peer, tag, letter); });
  return sent;
}

core::Result<std::optional<Letter>> MpiProcess::receive(int peer, int tag) {
  core::Result<std::optional<Letter>> received = std::optional<Letter>();
  run([&] { received = mpi_.receive(peer, tag); });
  return received;
}

// Waits for the end of the call, which is short.
void MpiProcess::run(const std::function<void()>& call) {
  bool done = false;
  std::unique_lock lock(mutex_);
  calls_.emplace_back([&] {
    call();
    const std::lock_guard finished(mutex_);
    done = true;
  });
  changed_.notify_all();
  changed_.wait(lock, [&] { return done; });
}

void MpiProcess::serve() {
  core::Status initialised = mpi_.initialise();
  std::unique_lock lock(mutex_);
  initialised_ = std::move(initialised);
  while (true) {
    changed_.notify_all();
    changed_.wait(lock, [this] { return !calls_.empty(); });
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

void MpiProcess::end(int exit_status) {
  if (owner_ != ::getpid() || exit_status != 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (!initialised_ || !*initialised_) return;
  }
  run([this] { mpi_.finalise(); });
}

}  // namespace fasthorovod::transport
