#include "torch_binding/delayed_bindings.h"

#include <ATen/core/Tensor.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/compensation/delayed_sgd.h"
#include "torch_binding/python_calls.h"
#include "torch_binding/tensor_check.h"

namespace py = pybind11;

namespace fasthorovod::torch_binding {
namespace {

using ops::DelayedSgd;
using ops::OdSgd;

constexpr auto kMarkElements = static_cast<std::int64_t>(DelayedSgd::kMarkElements);

/// The flat buffers as aliases, never the caller's objects: the engine's worker may be the last to
/// let go of them, without the interpreter lock.
struct FlatTensors {
  at::Tensor weights;
  at::Tensor velocity;
  at::Tensor gradient;
};

std::span<float> values_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::unique_ptr<DelayedSgd> make(const std::string& name, const at::Tensor& weights,
                                 const at::Tensor& velocity, const at::Tensor& gradient,
                                 core::GroupId set, std::uint64_t warm_up) {
  for (const at::Tensor& tensor : {weights, velocity, gradient}) {
    check(check_delayed(name, tensor));
  }
  if (velocity.numel() != weights.numel() || gradient.numel() != weights.numel() + kMarkElements) {
    throw py::value_error(name + ": the sizes of the flat buffers do not fit together");
  }
  auto flat = std::make_shared<FlatTensors>(
      FlatTensors{weights.detach(), velocity.detach(), gradient.detach()});
  const DelayedSgd::Memory memory{values_of(flat->weights), values_of(flat->velocity),
                                  values_of(flat->gradient), flat};
  return std::make_unique<DelayedSgd>(memory, name, set, warm_up);
}

/// A parameter's name, its tensor, and its local rate, rate, momentum and weight decay.
using NamedParameter = std::tuple<std::string, at::Tensor, std::array<double, 4>>;

void start(DelayedSgd& rule, const std::vector<NamedParameter>& given) {
  const std::shared_ptr<RunningEngine> running = require_engine();
  std::vector<DelayedSgd::Parameter> parameters;
  for (const auto& [name, tensor, numbers] : given) {
    check(check_delayed(name, tensor));
    const auto number = [&numbers](std::size_t i) { return static_cast<float>(numbers.at(i)); };
    parameters.push_back({values_of(tensor), number(0), {number(1), number(2), number(3)}});
  }
  core::Status status;
  {
    const py::gil_scoped_release release;
    status = rule.start(*running->engine, parameters);
  }
  check(status);
}

void finish(DelayedSgd& rule) {
  wait(rule);
  check(rule.finish());
}

bool next_is_delayed(const DelayedSgd& rule) {
  const core::Result<OdSgd::Step> step = rule.state().next();
  if (!step) {
    raise(step.error());
  }
  return *step == OdSgd::Step::kDelayed;
}

}  // namespace

void bind_delayed(py::module_& module) {
  module.def("check_delayed", [](const std::string& name, const at::Tensor& tensor) {
    check(check_delayed(name, tensor));
  });
  py::class_<DelayedSgd>(module, "DelayedSgd")
      .def_property_readonly_static("mark_elements",
                                    [](const py::object&) { return kMarkElements; })
      .def(py::init(&make), py::arg("name"), py::arg("weights"), py::arg("velocity"),
           py::arg("gradient"), py::arg("process_set"), py::arg("warm_up"))
      .def("start", &start)
      .def("finish", &finish)
      .def("next_is_delayed", &next_is_delayed)
      .def("take_over", [](DelayedSgd& rule) { check(rule.state().take_over()); })
      .def("show", [](DelayedSgd& rule) { check(rule.state().show()); })
      .def("hide", [](DelayedSgd& rule) { check(rule.state().hide()); })
      .def("restore",
           [](DelayedSgd& rule, std::uint64_t steps, bool taken_over) {
             check(rule.state().restore({steps, taken_over}));
           })
      .def_property_readonly("in_flight", [](const DelayedSgd& r) { return r.state().in_flight(); })
      .def_property_readonly("updates", [](const DelayedSgd& r) { return r.state().updates(); })
      .def_property_readonly("steps",
                             [](const DelayedSgd& r) { return r.state().progress().steps; })
      .def_property_readonly("awaits_take_over",
                             [](const DelayedSgd& r) { return r.state().awaits_take_over(); })
      .def_property_readonly("taken_over",
                             [](const DelayedSgd& r) { return r.state().progress().taken_over; });
}

}  // namespace fasthorovod::torch_binding
