#include "torch_binding/c10d/call_builder.h"

#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/block_sizes.h"

namespace fasthorovod::torch_binding {
namespace {

using ops::OrderedKind;
using ops::OrderedOperation;

/// "all_reduce" of "fasthorovod:all_reduce".
const char* short_name(const char* title) { return title + sizeof("fasthorovod:") - 1; }

}  // namespace

std::string describe(const char* what, const at::Tensor& tensor) {
  return std::string(what) + " of " + std::to_string(tensor.numel()) + " " +
         std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

CallBuilder::CallBuilder(c10d::OpType type, const char* title, std::chrono::milliseconds limit) {
  call.type = type;
  call.title = title;
  call.time_limit = limit;
  call.memory = memory;
}

OrderedOperation& CallBuilder::add(OrderedKind kind, core::DataType type,
                                   const at::Tensor& described) {
  OrderedOperation operation;
  operation.kind = kind;
  operation.type = type;
  operation.keep_alive = memory;
  operation.title = describe(short_name(call.title), described);
  operations.push_back(std::move(operation));
  return operations.back();
}

void CallBuilder::all_reduce(const at::Tensor& tensor, const Reducing& how) {
  const at::Tensor values = as_values(tensor, how);
  const WireUnit unit = unit_of_values(values);
  const at::Tensor whole = memory->write(values, true);
  OrderedOperation& operation = add(OrderedKind::kAllreduce, unit.type, tensor);
  operation.reduction = how.reduction;
  operation.prescale = how.prescale;
  operation.input = input_bytes(whole);
  operation.output = output_bytes(whole);
}

void CallBuilder::all_gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input) {
  const WireUnit unit = unit_of_bytes(input);
  for (const at::Tensor& output : outputs) check_same_type(output, input);
  const at::Tensor whole = memory->write_all(outputs);
  const at::Tensor block = memory->apart(memory->read(input), whole);
  OrderedOperation& operation = add(OrderedKind::kAllgather, unit.type, input);
  operation.blocks = outputs.size() > 1 ? block_sizes(outputs, unit) : operation.blocks;
  operation.input = input_bytes(block);
  operation.output = output_bytes(whole);
}

void CallBuilder::reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                                 const Reducing& how) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& input : inputs) {
    check_same_type(input, output);
    values.push_back(as_values(input, how));
  }
  const at::Tensor target = as_values(output, how);
  const WireUnit unit = unit_of_values(target);
  const at::Tensor block = memory->write(target, false);
  const at::Tensor whole = memory->apart(memory->read_all(values), block);
  OrderedOperation& operation = add(OrderedKind::kReduceScatter, unit.type, output);
  operation.reduction = how.reduction;
  operation.prescale = how.prescale;
  operation.blocks = values.size() > 1 ? block_sizes(values, unit) : operation.blocks;
  operation.input = input_bytes(whole);
  operation.output = output_bytes(block);
}

void CallBuilder::gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input,
                         int root) {
  const WireUnit unit = unit_of_bytes(input);
  for (const at::Tensor& output : outputs) check_same_type(output, input);
  const at::Tensor whole = outputs.empty() ? at::Tensor() : memory->write_all(outputs);
  at::Tensor block = memory->read(input);
  if (whole.defined()) block = memory->apart(block, whole);
  OrderedOperation& operation = add(OrderedKind::kGather, unit.type, input);
  operation.root = root;
  operation.blocks = outputs.size() > 1 ? block_sizes(outputs, unit) : operation.blocks;
  operation.input = input_bytes(block);
  if (whole.defined()) operation.output = output_bytes(whole);
}

}  // namespace fasthorovod::torch_binding
