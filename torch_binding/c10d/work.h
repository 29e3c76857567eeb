// What torch.distributed gets for a call: a Work over one or several handles of the engine.
//
// It settles once, when all its handles are done: results are copied to where the caller wants
// them, the Work completes, then its futures. Whoever comes first does that: the completion thread,
// or a thread in wait(). Callbacks of futures run there, without a lock.
//
// A call may have two parts: then the second one's handles are made when the first part has
// succeeded, by whoever comes first.
//
// Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ops/handle.h"
#include "torch_binding/c10d/host_memory.h"
#include "torch_binding/completion_thread.h"

namespace fasthorovod::torch_binding {

/// The exception that torch's callers get: ValueError for what the caller can mend, else
/// DistBackendError.
std::exception_ptr to_exception(const core::Error& error);

/// What a call is, and what it gives.
struct Call {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = "";              // "fasthorovod:all_reduce", static
  std::vector<at::Tensor> inputs;      // for the profiler
  std::vector<at::Tensor> results;     // as the caller sees them
  std::size_t list_length = 0;         // above 0: the Future gives lists of so many of them
  std::shared_ptr<HostMemory> memory;  // owners: the engine and this, which lets go last
  /// Starts the second part, if there is one; gets `sequence`. Called once, at most.
  std::function<core::Result<std::vector<ops::Handle>>(std::uint64_t)> next;
  /// Called once, after success, before anybody learns of it.
  std::function<void()> finish;
  std::chrono::milliseconds time_limit{0};
  std::uint64_t sequence = 0;
};

class EngineWork final : public c10d::Work {
 public:
  /// Called once, when it has settled.
  using Settled = std::function<void(const core::Status&)>;

  /// `completions` outlives it. Taken from the calling thread, for the profiler.
  EngineWork(int rank, Call call, Settled settled);

  /// Waits for these from now on. Once.
  void start(std::vector<ops::Handle> handles, CompletionThread& completions);
  /// Instead of that: the call is over, with this outcome.
  void settle_with(core::Status outcome);

  bool isSuccess() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  /// Throws the operation's error; DistBackendError when `timeout` passes (the operation goes on).
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return outcome_; }
  std::uint64_t getSequencenumber() const override { return call_.sequence; }
  std::chrono::milliseconds getTimeout() const override { return call_.time_limit; }
  std::uint64_t getCompletionKey() const override { return key_; }

 private:
  void settle();
  /// Starts the second part. When it returns, somebody has.
  void advance();
  void wait_for(const std::vector<ops::Handle>& handles, std::chrono::milliseconds timeout,
                std::chrono::steady_clock::time_point deadline) const;
  core::Status outcome_of_handles() const;
  core::Status copy_out();

  Call call_;
  Settled settled_;
  std::vector<ops::Handle> handles_;
  core::Status ran_;  // the outcome of a call without handles
  const bool has_next_;
  std::once_flag advanced_;
  core::Status next_started_;  // written by advance(), as the next one
  std::vector<ops::Handle> next_handles_;
  const std::uint64_t key_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;   // of the results
  c10::intrusive_ptr<c10::ivalue::Future> outcome_;  // of a WorkResult
  std::atomic<bool> settling_{false};                // somebody has taken it upon himself
};

}  // namespace fasthorovod::torch_binding
