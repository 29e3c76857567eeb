#include "torch_binding/c10d/bindings.h"

#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <string>
#include <utility>

#include "torch_binding/c10d/backend.h"
#include "torch_binding/c10d/meeting.h"
#include "torch_binding/c10d/work.h"

namespace py = pybind11;

namespace fasthorovod::torch_binding {

namespace {

/// A group over several backends hands the options of one to all: what is no dictionary is not
/// ours.
void check_options(const py::object& user) {
  if (!py::isinstance<py::dict>(user)) return;
  for (const auto& [name, value] : user.cast<py::dict>()) {
    throw py::value_error("pg_options: there is no option " + py::repr(name).cast<std::string>() +
                          "; fasthorovod takes its settings from FASTHOROVOD_ variables");
  }
}

}  // namespace

void bind_c10d(py::module_& module, EngineHolder& holder) {
  // What torch calls on a backend that can be split, by name, for ranks outside a new group: groups
  // need nothing from them.
  py::class_<EngineBackend, c10d::Backend, c10::intrusive_ptr<EngineBackend>>(module, "Backend")
      .def("perform_nocolor_split", [](EngineBackend& /*self*/, const py::object& /*device*/) {});
  module.def(
      "create_backend",
      [&holder](const c10d::DistributedBackendOptions& options, const py::object& user) {
        check_options(user);
        const py::gil_scoped_release release;
        auto group = form_group(options, meeting_store(options), holder);
        if (!group) std::rethrow_exception(to_exception(group.error()));
        return c10::intrusive_ptr<c10d::Backend>(
            c10::make_intrusive<EngineBackend>(*std::move(group), holder));
      },
      py::arg("options"), py::arg("user_options") = py::none());
  module.def("stop", [&holder] {
    const py::gil_scoped_release release;
    holder.stop();
  });
}

}  // namespace fasthorovod::torch_binding
