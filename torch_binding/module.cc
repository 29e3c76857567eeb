// The Python module fasthorovod._C: the Horovod door's way to the engine. What the user sees is
// written in Python (package fasthorovod.torch); here are only the calls that need the engine.
// Every call that may wait, or that touches the engine's locks, gives up the interpreter lock.
#include <ATen/ops/from_blob.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compression/codec_table.h"
#include "core/build_id.h"
#include "torch_binding/c10d/bindings.h"
#include "torch_binding/delayed_bindings.h"
#include "torch_binding/engine_holder.h"
#include "torch_binding/operation.h"
#include "torch_binding/python_calls.h"
#include "torch_binding/shared_tensors.h"
#include "transport/mpi_plugin.h"
#include "transport/mpi_process.h"
#include "transport/own_folders.h"

namespace py = pybind11;

namespace fasthorovod::torch_binding {
namespace {

void init() {
  core::Status status;
  {
    const py::gil_scoped_release release;
    status = holder().init();
  }
  check(status);
}

void shutdown() {
  const py::gil_scoped_release release;
  holder().shutdown();
}

/// Submits without the interpreter lock; `start` gets the engine.
template <typename Start>
std::unique_ptr<Operation> submit(Start start) {
  const std::shared_ptr<RunningEngine> running = require_engine();
  auto operation = [&] {
    const py::gil_scoped_release release;
    return start(*running->engine);
  }();
  if (!operation) {
    raise(operation.error());
  }
  return std::make_unique<Operation>(*std::move(operation));
}

using NamedCodec = std::pair<std::string, float>;  // and its threshold

std::vector<core::CodecChoice> choices_of(const std::vector<NamedCodec>& codecs) {
  std::vector<core::CodecChoice> choices;
  for (const auto& [name, threshold] : codecs) {
    const core::Result<core::CodecId> id = compression::find_codec(name);
    if (!id) {
      raise(id.error());
    }
    choices.push_back({*id, threshold});
  }
  return choices;
}

/// The codecs there are: their names and what they do.
std::vector<std::pair<std::string, std::string>> codecs() {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const compression::CodecInfo& codec : compression::codec_table()) {
    rows.emplace_back(codec.name, codec.summary);
  }
  return rows;
}

/// What a codec keeps of a tensor that is not in flight, as a vector; no elements: nothing.
at::Tensor residual(const std::string& name, core::GroupId set) {
  const std::shared_ptr<RunningEngine> running = require_engine();
  const py::gil_scoped_release release;
  const std::vector<float> kept = running->engine->residual(set, name);
  return at::from_blob(const_cast<float*>(kept.data()), {static_cast<std::int64_t>(kept.size())},
                       at::kFloat)
      .clone();
}

void set_residual(const std::string& name, const at::Tensor& residual, core::GroupId set) {
  const std::shared_ptr<RunningEngine> running = require_engine();
  const py::gil_scoped_release release;
  const at::Tensor values = residual.to(at::kCPU, at::kFloat).contiguous();
  const float* const first = values.const_data_ptr<float>();
  running->engine->set_residual(set, name, {first, first + values.numel()});
}

std::unique_ptr<Operation> allreduce(const std::vector<std::string>& names,
                                     const std::vector<at::Tensor>& tensors, bool in_place,
                                     int reduction, double prescale, double postscale,
                                     const std::string& bundle, core::GroupId set,
                                     const std::vector<NamedCodec>& codecs) {
  const auto known = core::reduction_from_wire(static_cast<std::uint8_t>(reduction));
  if (reduction < 0 || reduction > 255 || !known || tensors.empty() ||
      names.size() != tensors.size() || codecs.size() != tensors.size()) {
    throw py::value_error(
        "allreduce: no such reduction, or names, codecs and tensors do not match");
  }
  const Place place = in_place ? Place::kInPlace : Place::kNew;
  const ReduceOptions options{*known, prescale, postscale, choices_of(codecs)};
  return submit([&](ops::Engine& engine) {
    return Operation::allreduce({engine, set}, names, tensors, place, options, bundle);
  });
}

/// Waits for the operation. One entry a tensor: the result, or None where the result is in the
/// tensor given.
py::list finish(Operation& operation) {
  wait(operation);
  core::Status status;
  {
    const py::gil_scoped_release release;
    status = operation.finish();
  }
  check(status);
  py::list results;
  for (const at::Tensor& tensor : operation.results()) {
    results.append(tensor.defined() ? py::cast(tensor) : py::object(py::none()));
  }
  return results;
}

py::dict statistics() {
  const std::shared_ptr<RunningEngine> running = require_engine();
  const ops::EngineStatistics now = [&] {
    const py::gil_scoped_release release;
    return running->engine->statistics();
  }();
  py::dict result;
  result["operations"] = now.operations;
  result["tensors"] = now.tensors;
  result["payload_bytes"] = now.payload_bytes;
  result["bytes_sent"] = now.bytes_sent;
  result["bytes_received"] = now.bytes_received;
  result["cache_hits"] = now.cache_hits;
  result["refused_connections"] = now.refused_connections;
  result["blocked_seconds"] = std::chrono::duration<double>(holder().blocked()).count();
  return result;
}

void bind_world(py::module_& module) {
  py::class_<core::World>(module, "World")
      .def_readonly("rank", &core::World::rank)
      .def_readonly("size", &core::World::size)
      .def_readonly("local_rank", &core::World::local_rank)
      .def_readonly("local_size", &core::World::local_size)
      .def_readonly("cross_rank", &core::World::cross_rank)
      .def_readonly("cross_size", &core::World::cross_size)
      .def_readonly("homogeneous", &core::World::homogeneous)
      .def_readonly("epoch", &core::World::epoch);
  module.def("world", [] { return require_engine()->engine->world(); });
}

void bind_mpi(py::module_& module) {
  module.def("mpi_built", [] { return transport::has_mpi_plugin(transport::own_folders()); });
  module.def("mpi_enabled", [] {
    return holder().running() != nullptr && transport::MpiProcess::entered() != nullptr;
  });
  module.def("mpi_threads_supported", [] {
    const transport::MpiProcess* mpi = transport::MpiProcess::entered();
    return mpi != nullptr && mpi->allows_all_threads();
  });
}

void bind_operations(py::module_& module) {
  py::class_<Operation>(module, "Operation")
      .def("done", &Operation::done, py::call_guard<py::gil_scoped_release>())
      .def("finish", &finish)
      .def_property_readonly("last_joined", &Operation::last_joined)
      .def_property_readonly("process_set_id", &Operation::set);
  module.def("allreduce", &allreduce, py::arg("names"), py::arg("tensors"), py::arg("in_place"),
             py::arg("reduction"), py::arg("prescale"), py::arg("postscale"), py::arg("bundle"),
             py::arg("process_set"), py::arg("codecs"));
  module.def("codecs", &codecs);
  module.def("residual", &residual, py::arg("name"), py::arg("process_set"));
  module.def("set_residual", &set_residual, py::arg("name"), py::arg("residual"),
             py::arg("process_set"));
  module.def("broadcast", [](const std::string& name, const at::Tensor& tensor, bool in_place,
                             int root, core::GroupId set) {
    const Place place = in_place ? Place::kInPlace : Place::kNew;
    return submit([&](ops::Engine& engine) {
      return Operation::broadcast({engine, set}, name, tensor, place, root);
    });
  });
  module.def("allgather", [](const std::string& name, const at::Tensor& tensor, core::GroupId set) {
    return submit([&](ops::Engine& engine) {
      return Operation::allgather({engine, set}, name, tensor);
    });
  });
  module.def("barrier", [](const std::string& name, core::GroupId set) {
    return submit([&](ops::Engine& engine) { return Operation::barrier({engine, set}, name); });
  });
  module.def("join", [](const std::string& name) {
    return submit([&](ops::Engine& engine) { return Operation::join(engine, name); });
  });
}

void bind_process_sets(py::module_& module) {
  const auto change = [](core::OpKind kind) {
    return [kind](const std::string& name, std::vector<int> ranks) {
      return submit([&](ops::Engine& engine) {
        return Operation::change_sets(engine, name, kind, std::move(ranks));
      });
    };
  };
  module.def("add_process_set", change(core::OpKind::kAddGroup));
  module.def("remove_process_set", change(core::OpKind::kRemoveGroup));
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "The engine of FastHorovod; use fasthorovod.torch or torch.distributed instead.";
  module.def("init", &init);
  module.def("shutdown", &shutdown);
  module.def("is_initialized", [] { return holder().running_for_horovod() != nullptr; });
  module.def("statistics", &statistics);
  module.def("build_id", [] { return std::string(core::build_id()); });
  module.def("version", [] { return std::string(core::version()); });
  bind_world(module);
  bind_mpi(module);
  bind_operations(module);
  bind_process_sets(module);
  bind_delayed(module);
  bind_shared_tensors(module);
  bind_c10d(module, holder());
}

}  // namespace fasthorovod::torch_binding
