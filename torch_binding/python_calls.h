// What the bindings of the Horovod door share: errors into Python's exceptions, the way to the
// engine, and waiting that leaves other Python threads alone.
//
// Thread: any that holds the interpreter lock.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <memory>

#include "core/result.h"
#include "torch_binding/engine_holder.h"

namespace fasthorovod::torch_binding {

/// Throws the Python exception for an error: ValueError for what the caller can mend, else
/// HorovodInternalError with the fields code and culprit.
[[noreturn]] void raise(const core::Error& error);

/// raise() if it is an error.
void check(const core::Status& status);

/// The one holder of the process. Never destroyed: threads may still submit while the process ends.
EngineHolder& holder();

/// The running engine, or ValueError that tells to call init().
std::shared_ptr<RunningEngine> require_engine();

/// How long a wait sleeps before it looks whether the user pressed Ctrl-C.
inline constexpr std::chrono::milliseconds kSignalCheck{100};

/// Waits, without the interpreter lock, until `operation.wait_for(limit)` says that it is done.
template <typename Operation>
void wait(const Operation& operation) {
  if (operation.wait_for(std::chrono::milliseconds(0))) {
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  bool done = false;
  while (!done) {
    {
      const pybind11::gil_scoped_release release;
      done = operation.wait_for(kSignalCheck);
    }
    if (!done && PyErr_CheckSignals() != 0) {
      throw pybind11::error_already_set();
    }
  }
  holder().add_blocked(std::chrono::steady_clock::now() - start);
}

}  // namespace fasthorovod::torch_binding
