// Python wants to be first.
#include "torch_binding/c10d/backend.h"

#include <Python.h>
#include <c10/util/Exception.h>

#include <utility>

namespace fasthorovod::torch_binding {
namespace {

// Larger calls gain nothing from being run by their caller.
constexpr std::size_t kMostBytesRun = std::size_t{1} << 20;

}  // namespace

EngineBackend::EngineBackend(Group group, EngineHolder& holder)
    : Backend(group.rank, group.size),
      pending_(std::make_shared<PendingWorks>()),
      group_(std::move(group)),
      holder_(holder),
      time_limit_(group_.time_limit) {
  init();
}

EngineBackend::~EngineBackend() {
  // Python drops the last reference under its lock, and shutdown() waits for callbacks that take
  // it.
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    PyThreadState* const state = PyEval_SaveThread();
    shutdown();
    PyEval_RestoreThread(state);
  } else {
    shutdown();
  }
}

c10::intrusive_ptr<c10d::Backend::Options> EngineBackend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(kBackendName, time_limit_.load());
  options->group_name = group_.name;
  options->global_ranks_in_group = group_.global_ranks;
  return options;
}

std::chrono::milliseconds EngineBackend::limit(std::chrono::milliseconds given) const {
  return given > kNoTimeout ? given : time_limit_.load();
}

void EngineBackend::check_open() const {
  TORCH_CHECK_WITH(DistBackendError, !closed_.load(),
                   "this process group was shut down or aborted");
}

// Under order_.
c10::intrusive_ptr<EngineWork> EngineBackend::make_work(Call call) {
  call.sequence = ++sequence_;
  return c10::make_intrusive<EngineWork>(
      rank_, std::move(call),
      [pending = pending_](const core::Status& status) { pending->settled(status); });
}

c10::intrusive_ptr<c10d::Work> EngineBackend::submit(CallBuilder builder) {
  check_open();
  std::vector<ops::Handle> handles;
  c10::intrusive_ptr<EngineWork> work;
  {
    const std::lock_guard order(order_);
    const auto time_limit = builder.call.time_limit;
    work = make_work(std::move(builder.call));
    for (ops::OrderedOperation& operation : builder.operations) {
      operation.group = group_.id;
      operation.time_limit = time_limit;
      auto handle = group_.running->engine->submit_ordered(std::move(operation));
      if (!handle) std::rethrow_exception(to_exception(handle.error()));
      handles.push_back(*std::move(handle));
    }
  }
  pending_->began();
  work->start(std::move(handles), *group_.running->completions);
  return work;
}

// The caller will wait for it at once; small calls then do without other threads.
c10::intrusive_ptr<c10d::Work> EngineBackend::run(CallBuilder builder) {
  const bool is_small =
      builder.operations.size() == 1 && builder.operations.front().output.size() <= kMostBytesRun;
  if (!is_small) return submit(std::move(builder));
  check_open();
  ops::OrderedOperation operation = std::move(builder.operations.front());
  operation.group = group_.id;
  operation.time_limit = builder.call.time_limit;
  c10::intrusive_ptr<EngineWork> work;
  {
    const std::lock_guard order(order_);
    work = make_work(std::move(builder.call));
  }
  pending_->began();
  work->settle_with(group_.running->engine->run(std::move(operation)));
  return work;
}

uint64_t EngineBackend::getSequenceNumberForGroup() {
  const std::lock_guard order(order_);
  return sequence_;
}

void EngineBackend::waitForPendingWorks() { pending_->wait(); }

c10d::ErrorType EngineBackend::getError() { return pending_->error(); }

void EngineBackend::abort() {
  if (closed_.exchange(true)) return;
  group_.running->engine->abort_group(group_.id);
}

void EngineBackend::shutdown() {
  if (!closed_.exchange(true)) group_.running->engine->remove_group(group_.id);
  if (!left_.exchange(true)) holder_.leave(group_.running);
}

}  // namespace fasthorovod::torch_binding
