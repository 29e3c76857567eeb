#include "torch_binding/c10d/work.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <string>

namespace fasthorovod::torch_binding {
namespace {

using c10::ivalue::Future;

std::uint64_t next_key() {
  static std::atomic<std::uint64_t> last{0};  // pairs with nothing: only its values matter
  return ++last;
}

std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.device().is_cpu()) devices.push_back(tensor.device());
  }
  return devices;
}

c10::TypePtr type_of(const Call& call) {
  const auto list = c10::ListType::ofTensors();
  if (call.list_length > 0) return c10::ListType::create(list);
  return list;
}

c10::IValue value_of(const Call& call) {
  if (call.list_length == 0) return call.results;
  std::vector<std::vector<at::Tensor>> lists;
  for (std::size_t at = 0; at < call.results.size(); at += call.list_length) {
    const auto first = call.results.begin() + static_cast<std::ptrdiff_t>(at);
    lists.emplace_back(first, first + static_cast<std::ptrdiff_t>(call.list_length));
  }
  return lists;
}

/// Runs `task` on the completion thread when all are done. What it holds dies there or with a
/// caller, too: tensors of Python must not die on a thread of the engine.
/// Has handles of its own, since the last one may end the owner of the caller's.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void when_all_done(std::vector<ops::Handle> handles, CompletionThread& completions,
                   std::function<void()> task) {
  struct Waiting {
    std::atomic<std::size_t> left;
    std::function<void()> task;
  };
  if (handles.empty()) return completions.post(std::move(task));
  auto waiting = std::make_shared<Waiting>();  // owners: the callbacks
  waiting->left = handles.size();
  waiting->task = std::move(task);
  for (const ops::Handle& handle : handles) {
    handle.on_done([waiting, &completions] {
      if (--waiting->left == 0) completions.post(std::move(waiting->task));
    });
  }
}

core::Status first_failure(const std::vector<ops::Handle>& handles) {
  for (const ops::Handle& handle : handles) {
    if (core::Status status = handle.wait(); !status) return status;
  }
  return {};
}

c10d::WorkResult outcome(const core::Status& status) {
  if (status) return c10d::WorkResult::SUCCESS;
  return status.error().code == core::ErrorCode::kTimedOut ? c10d::WorkResult::TIMEOUT
                                                           : c10d::WorkResult::COMM_ERROR;
}

}  // namespace

std::exception_ptr to_exception(const core::Error& error) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)};
  if (error.code == core::ErrorCode::kInvalidArgument) {
    return std::make_exception_ptr(c10::ValueError(here, error.message));
  }
  std::string text = std::string(to_string(error.code)) + ": " + error.message;
  if (error.code == core::ErrorCode::kTimedOut) {
    text += "; if the ranks are only slow, raise the timeout given to the operation or its group";
  }
  return std::make_exception_ptr(c10::DistBackendError(here, std::move(text)));
}

EngineWork::EngineWork(int rank, Call call, Settled settled)
    : Work(rank, call.type, call.title, call.inputs),
      call_(std::move(call)),
      settled_(std::move(settled)),
      has_next_(call_.next != nullptr),
      key_(next_key()),
      future_(c10::make_intrusive<Future>(type_of(call_), devices_of(call_.results))),
      outcome_(c10::make_intrusive<Future>(c10::IntType::get())) {
  call_.inputs.clear();
}

void EngineWork::start(std::vector<ops::Handle> handles, CompletionThread& completions) {
  handles_ = std::move(handles);
  when_all_done(handles_, completions,
                [work = c10::intrusive_ptr<EngineWork>::reclaim_copy(this), &completions] {
                  if (!work->has_next_) return work->settle();
                  work->advance();
                  when_all_done(work->next_handles_, completions, [work] { work->settle(); });
                });
}

void EngineWork::settle_with(core::Status outcome) {
  ran_ = std::move(outcome);
  settle();
}

void EngineWork::advance() {
  std::call_once(advanced_, [this] {
    const auto next = std::exchange(call_.next, nullptr);
    next_started_ = first_failure(handles_);
    if (!next_started_) return;
    try {
      auto started = next(call_.sequence);
      if (started) {
        next_handles_ = *std::move(started);
      } else {
        next_started_ = std::move(started).error();
      }
    } catch (const std::exception& failure) {
      next_started_ = core::Error{core::ErrorCode::kSystem, failure.what()};
    }
  });
}

bool EngineWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

int EngineWork::sourceRank() const { return handles_.empty() ? -1 : handles_.front().source(); }

std::vector<at::Tensor> EngineWork::result() {
  TORCH_CHECK(isCompleted(), "the operation has not completed; call wait() first");
  return call_.results;
}

void EngineWork::synchronize() { future_->wait(); }

bool EngineWork::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  wait_for(handles_, timeout, deadline);
  if (has_next_) {
    advance();
    wait_for(next_handles_, timeout, deadline);
  }
  settle();
  future_->waitAndThrow();
  return true;
}

void EngineWork::wait_for(const std::vector<ops::Handle>& handles,
                          std::chrono::milliseconds timeout,
                          std::chrono::steady_clock::time_point deadline) const {
  for (const ops::Handle& handle : handles) {
    if (timeout <= kNoTimeout) {
      (void)handle.wait();
      continue;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!handle.wait_for(std::max(left, std::chrono::milliseconds(0)))) {
      std::rethrow_exception(
          to_exception({core::ErrorCode::kTimedOut,
                        std::string("Timed out: ") + call_.title + " was not done within the " +
                            std::to_string(timeout.count()) + " ms that wait() was given"}));
    }
  }
}

core::Status EngineWork::outcome_of_handles() const {
  if (!ran_) return ran_;
  core::Status status = first_failure(handles_);
  if (status && has_next_) status = next_started_;
  return status ? first_failure(next_handles_) : status;
}

core::Status EngineWork::copy_out() {
  try {
    if (call_.memory != nullptr) call_.memory->copy_out();
    if (call_.finish) call_.finish();
  } catch (const std::exception& failure) {
    return core::Error{core::ErrorCode::kSystem, std::string("copying results: ") + failure.what()};
  }
  return {};
}

void EngineWork::settle() {
  if (settling_.exchange(true)) return;
  core::Status status = outcome_of_handles();
  if (status) status = copy_out();
  call_.memory.reset();
  call_.finish = nullptr;
  settled_(status);
  settled_ = nullptr;
  const std::exception_ptr failure = status ? nullptr : to_exception(status.error());
  finish(failure);
  try {
    outcome_->markCompleted(static_cast<std::int64_t>(outcome(status)));
    if (failure) {
      future_->setError(failure);
    } else {
      future_->markCompleted(value_of(call_));
    }
  } catch (const std::exception& broken) {
    TORCH_WARN("a callback of a future threw: ", broken.what());
  }
}

}  // namespace fasthorovod::torch_binding
