#include "torch_binding/operation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <functional>
#include <memory>
#include <utility>

#include "torch_binding/tensor_check.h"

namespace fasthorovod::torch_binding {

/// The memory of one tensor: what is lent to the engine, and where its result goes.
struct Buffers {
  at::Tensor input;    // on the host, in logical order
  at::Tensor output;   // the same; `input` itself when that may be overwritten
  at::Tensor target;   // the result as the caller sees it; the same memory as `output`, or filled
                       // from it by finish()
  bool given = false;  // target is the caller's tensor
};

namespace {

using core::OpKind;

/// True when the engine can work on the tensor's own memory.
bool lies_in_order(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.is_neg();
}

/// A copy on the host in logical order. From a GPU this waits for the tensor's stream.
at::Tensor host_copy(const at::Tensor& tensor) {
  at::Tensor copy = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  copy.copy_(tensor);
  return copy;
}

core::Error refused(std::string sentence) {
  return {core::ErrorCode::kInvalidArgument, std::move(sentence)};
}

core::Request make_request(const std::string& name, OpKind op,
                           core::GroupId set = core::kWorldGroup) {
  core::Request request;
  request.name = name;
  request.group = set;
  request.op = op;
  return request;
}

/// Fills in type and shape, or says why this tensor cannot travel.
core::Status describe(core::Request& request, const at::Tensor& tensor, Place place) {
  core::Result<core::DataType> type = wire_type(tensor);
  if (!type) {
    return std::move(type).error().with_context(request.name);
  }
  if (place == Place::kInPlace && !elements_are_apart(tensor)) {
    return refused(request.name +
                   ": a tensor whose elements share memory (an expanded one) cannot be written in "
                   "place; pass a clone() of it");
  }
  request.type = *type;
  request.shape = tensor.sizes().vec();
  return {};
}

/// Buffers for an operation whose result has the shape of its input. `reads` says whether this
/// rank's values matter.
std::shared_ptr<Buffers> like_input(const at::Tensor& given, Place place, bool reads) {
  const at::Tensor tensor = given.detach();
  auto buffers = std::make_shared<Buffers>();
  buffers->given = place == Place::kInPlace;
  buffers->target = buffers->given ? tensor : at::empty_like(tensor);
  const bool lent_target = lies_in_order(buffers->target);
  if (lies_in_order(tensor) && lent_target && reads) {
    buffers->input = tensor;
    buffers->output = buffers->target;
    return buffers;
  }
  if (lent_target) {
    buffers->output = buffers->target;
    if (reads && !buffers->given) {
      buffers->output.copy_(tensor);
    }
  } else {
    buffers->output =
        reads ? host_copy(tensor) : at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  }
  buffers->input = buffers->output;
  return buffers;
}

ops::Submission lend(core::Request request, const std::shared_ptr<Buffers>& buffers) {
  ops::Submission submission;
  submission.request = std::move(request);
  submission.input = buffers->input.const_data_ptr();
  submission.output = buffers->output.defined() ? buffers->output.mutable_data_ptr() : nullptr;
  submission.keep_alive = buffers;
  return submission;
}

}  // namespace

core::Result<Operation> Operation::allreduce(const Among& among,
                                             const std::vector<std::string>& names,
                                             const std::vector<at::Tensor>& tensors, Place place,
                                             const ReduceOptions& options,
                                             const std::string& bundle) {
  const at::NoGradGuard no_grad;
  Operation operation;
  std::vector<core::Request> requests;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    core::Request request = make_request(names[i], OpKind::kAllreduce, among.set);
    request.reduction = options.reduction;
    request.prescale = options.prescale;
    request.postscale = options.postscale;
    request.codec = options.codecs[i];
    if (core::Status status = describe(request, tensors[i], place); !status) {
      return std::move(status).error();
    }
    requests.push_back(std::move(request));
  }
  std::vector<ops::Submission> members;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    operation.buffers_.push_back(like_input(tensors[i], place, true));
    members.push_back(lend(std::move(requests[i]), operation.buffers_.back()));
  }
  if (bundle.empty()) {
    core::Result<ops::Handle> handle = among.engine.submit(std::move(members.front()));
    if (!handle) {
      return std::move(handle).error();
    }
    operation.handles_.push_back(*std::move(handle));
    return operation;
  }
  core::Result<std::vector<ops::Handle>> handles =
      among.engine.submit_bundle(bundle, std::move(members));
  if (!handles) {
    return std::move(handles).error();
  }
  operation.handles_ = *std::move(handles);
  return operation;
}

core::Result<Operation> Operation::broadcast(const Among& among, const std::string& name,
                                             const at::Tensor& tensor, Place place, int root) {
  const at::NoGradGuard no_grad;
  const core::World& world = among.engine.world();
  if (root < 0 || root >= world.size) {
    return refused(name + ": root rank " + std::to_string(root) + " is not one of the " +
                   std::to_string(world.size) + " ranks");
  }
  core::Request request = make_request(name, OpKind::kBroadcast, among.set);
  request.root = root;
  if (core::Status status = describe(request, tensor, place); !status) {
    return std::move(status).error();
  }
  Operation operation;
  operation.buffers_.push_back(like_input(tensor, place, world.rank == root));
  core::Result<ops::Handle> handle =
      among.engine.submit(lend(std::move(request), operation.buffers_.back()));
  if (!handle) {
    return std::move(handle).error();
  }
  operation.handles_.push_back(*std::move(handle));
  return operation;
}

core::Result<Operation> Operation::allgather(const Among& among, const std::string& name,
                                             const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  core::Request request = make_request(name, OpKind::kAllgather, among.set);
  if (core::Status status = describe(request, tensor, Place::kNew); !status) {
    return std::move(status).error();
  }
  if (tensor.dim() == 0) {
    return refused(name +
                   ": all-gather joins tensors along their first dimension, and this one has none; "
                   "pass tensor.unsqueeze(0)");
  }
  auto buffers = std::make_shared<Buffers>();
  const at::Tensor plain = tensor.detach();
  buffers->input = lies_in_order(plain) ? plain : host_copy(plain);
  ops::Submission submission = lend(std::move(request), buffers);
  submission.allocate_output = [buffers, device = plain.device(),
                                options = plain.options().device(at::kCPU)](
                                   const std::vector<std::int64_t>& shape) -> core::Result<void*> {
    try {
      buffers->output = at::empty(shape, options);
      buffers->target =
          device.is_cpu() ? buffers->output : at::empty(shape, options.device(device));
    } catch (const std::exception& failure) {
      return core::Error{core::ErrorCode::kSystem,
                         std::string("allocating the result: ") + failure.what()};
    }
    return buffers->output.mutable_data_ptr();
  };
  Operation operation;
  operation.buffers_.push_back(std::move(buffers));
  core::Result<ops::Handle> handle = among.engine.submit(std::move(submission));
  if (!handle) {
    return std::move(handle).error();
  }
  operation.handles_.push_back(*std::move(handle));
  return operation;
}

core::Result<Operation> Operation::barrier(const Among& among, const std::string& name) {
  return submit(among.engine, make_request(name, OpKind::kBarrier, among.set));
}

core::Result<Operation> Operation::join(ops::Engine& engine, const std::string& name) {
  return submit(engine, make_request(name, OpKind::kJoin));
}

core::Result<Operation> Operation::change_sets(ops::Engine& engine, const std::string& name,
                                               OpKind change, std::vector<int> ranks) {
  core::Request request = make_request(name, change);
  request.members = std::move(ranks);
  return submit(engine, std::move(request));
}

core::Result<Operation> Operation::submit(ops::Engine& engine, core::Request request) {
  ops::Submission submission;
  submission.request = std::move(request);
  core::Result<ops::Handle> handle = engine.submit(std::move(submission));
  if (!handle) {
    return std::move(handle).error();
  }
  Operation operation;
  operation.handles_.push_back(*std::move(handle));
  return operation;
}

bool Operation::done() const {
  for (const ops::Handle& handle : handles_) {
    if (!handle.done()) {
      return false;
    }
  }
  return true;
}

bool Operation::wait_for(std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (const ops::Handle& handle : handles_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!handle.wait_for(std::max(left, std::chrono::milliseconds(0)))) {
      return false;
    }
  }
  return true;
}

core::Status Operation::finish() {
  const at::NoGradGuard no_grad;
  for (const ops::Handle& handle : handles_) {
    if (core::Status status = handle.wait(); !status) {
      return status;
    }
  }
  for (const std::shared_ptr<Buffers>& buffers : buffers_) {
    if (!buffers->output.is_alias_of(buffers->target)) {
      buffers->target.copy_(buffers->output);
    }
    results_.push_back(buffers->given ? at::Tensor() : buffers->target);
  }
  buffers_.clear();
  return {};
}

int Operation::last_joined() const { return handles_.front().last_joined(); }

core::GroupId Operation::set() const { return handles_.front().group(); }

}  // namespace fasthorovod::torch_binding
