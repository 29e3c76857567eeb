// Reductions: all-reduce, reduce, reduce-scatter.
#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/backend.h"

namespace fasthorovod::torch_binding {

using c10d::OpType;
using ops::OrderedKind;
using ops::OrderedOperation;

c10::intrusive_ptr<c10d::Work> EngineBackend::allreduce(Tensors& tensors,
                                                        const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only(tensors, "all_reduce");
  if (is_sparse(tensor)) return allreduce_sparse(tensors, options);
  CallBuilder builder(OpType::ALLREDUCE, "fasthorovod:all_reduce", limit(options.timeout));
  builder.call.inputs = builder.call.results = tensors;
  builder.all_reduce(tensor, reducing(options.reduceOp));
  return options.asyncOp ? submit(std::move(builder)) : run(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  CallBuilder builder(OpType::ALLREDUCE_COALESCED, "fasthorovod:all_reduce",
                      limit(options.timeout));
  builder.call.inputs = builder.call.results = tensors;
  const Reducing how = reducing(options.reduceOp);
  for (const at::Tensor& tensor : tensors) builder.all_reduce(tensor, how);
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::reduce(Tensors& tensors,
                                                     const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only(tensors, "reduce");
  CallBuilder builder(OpType::REDUCE, "fasthorovod:reduce", limit(options.timeout));
  builder.call.inputs = builder.call.results = tensors;
  const Reducing how = reducing(options.reduceOp);
  const at::Tensor values = as_values(tensor, how);
  const WireUnit unit = unit_of_values(values);
  const bool is_root = options.rootRank == rank_;
  const at::Tensor whole =
      is_root ? builder.memory->write(values, true) : builder.memory->read(values);
  OrderedOperation& operation = builder.add(OrderedKind::kReduce, unit.type, tensor);
  operation.reduction = how.reduction;
  operation.prescale = how.prescale;
  operation.root = static_cast<int>(options.rootRank);
  operation.input = input_bytes(whole);
  if (is_root) operation.output = output_bytes(whole);
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::reduce_scatter(
    Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only(outputs, "reduce_scatter");
  TORCH_CHECK_VALUE(inputs.size() == 1, "reduce_scatter: one list of inputs is expected");
  check_count(inputs.front().size(), size_, "reduce_scatter");
  CallBuilder builder(OpType::REDUCE_SCATTER, "fasthorovod:reduce_scatter", limit(options.timeout));
  builder.call.inputs = inputs.front();
  builder.call.results = outputs;
  builder.reduce_scatter(output, inputs.front(), reducing(options.reduceOp));
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  check_parts(input, output, size_, "reduce_scatter_tensor");
  CallBuilder builder(OpType::_REDUCE_SCATTER_BASE, "fasthorovod:_reduce_scatter_base",
                      limit(options.timeout));
  builder.call.inputs = {input};
  builder.call.results = {output};
  builder.reduce_scatter(output, {input}, reducing(options.reduceOp));
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "reduce_scatter_tensor_coalesced: as many outputs as inputs are expected");
  CallBuilder builder(OpType::REDUCE_SCATTER_TENSOR_COALESCED, "fasthorovod:_reduce_scatter_base",
                      limit(options.timeout));
  builder.call.inputs = inputs;
  builder.call.results = outputs;
  const Reducing how = reducing(options.reduceOp);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_parts(inputs[i], outputs[i], size_, "reduce_scatter_tensor_coalesced");
    builder.reduce_scatter(outputs[i], {inputs[i]}, how);
  }
  return submit(std::move(builder));
}

}  // namespace fasthorovod::torch_binding
