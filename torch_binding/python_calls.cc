#include "torch_binding/python_calls.h"

#include <string>

namespace py = pybind11;

namespace fasthorovod::torch_binding {

void raise(const core::Error& error) {
  if (error.code == core::ErrorCode::kInvalidArgument ||
      error.code == core::ErrorCode::kDuplicateName) {
    throw py::value_error(error.message);
  }
  const py::object type =
      py::module_::import("fasthorovod.common.exceptions").attr("HorovodInternalError");
  const py::object culprit = error.culprit < 0 ? py::object(py::none()) : py::int_(error.culprit);
  const py::object exception =
      type(error.message, culprit, std::string(core::to_string(error.code)));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw py::error_already_set();
}

void check(const core::Status& status) {
  if (!status) {
    raise(status.error());
  }
}

EngineHolder& holder() {
  static auto* const instance = new EngineHolder;
  return *instance;
}

std::shared_ptr<RunningEngine> require_engine() {
  std::shared_ptr<RunningEngine> running = holder().running_for_horovod();
  if (running == nullptr) {
    throw py::value_error("FastHorovod is not initialised in this process; call hvd.init() first");
  }
  return running;
}

}  // namespace fasthorovod::torch_binding
