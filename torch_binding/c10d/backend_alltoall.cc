#include <c10/util/Exception.h>

#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/backend.h"
#include "torch_binding/c10d/block_sizes.h"

namespace fasthorovod::torch_binding {

using c10d::OpType;
using ops::OrderedKind;
using ops::OrderedOperation;

c10::intrusive_ptr<c10d::Work> EngineBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                            std::vector<int64_t>& output_splits,
                                                            std::vector<int64_t>& input_splits,
                                                            const c10d::AllToAllOptions& options) {
  check_same_type(output, input);
  CallBuilder builder(OpType::ALLTOALL_BASE, "fasthorovod:all_to_all", limit(options.timeout));
  builder.call.inputs = {input};
  builder.call.results = {output};
  const WireUnit unit = unit_of_bytes(input);
  std::vector<std::uint64_t> sent =
      split_sizes(input, input_splits, size_, unit, "all_to_all_single (input)");
  std::vector<std::uint64_t> received =
      split_sizes(output, output_splits, size_, unit, "all_to_all_single (output)");
  if (sent.empty() != received.empty()) {
    // One side is uneven: both say how.
    const auto even = [&](const at::Tensor& tensor) {
      return std::vector<std::uint64_t>(
          static_cast<std::size_t>(size_),
          static_cast<std::uint64_t>(tensor.numel() / size_) * unit.per_element);
    };
    if (sent.empty()) sent = even(input);
    if (received.empty()) received = even(output);
  } else if (sent.empty()) {
    TORCH_CHECK_VALUE(input.numel() == output.numel(),
                      "all_to_all_single: without split sizes input and output are equally large");
  }
  const at::Tensor target = builder.memory->write(output, false);
  const at::Tensor source = builder.memory->apart(builder.memory->read(input), target);
  OrderedOperation& operation = builder.add(OrderedKind::kAlltoall, unit.type, input);
  operation.blocks = std::move(sent);
  operation.received_blocks = std::move(received);
  operation.input = input_bytes(source);
  operation.output = output_bytes(target);
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllToAllOptions& options) {
  check_count(outputs.size(), size_, "all_to_all (outputs)");
  check_count(inputs.size(), size_, "all_to_all (inputs)");
  for (const at::Tensor& output : outputs) check_same_type(output, inputs.front());
  CallBuilder builder(OpType::ALLTOALL, "fasthorovod:all_to_all", limit(options.timeout));
  builder.call.inputs = inputs;
  builder.call.results = outputs;
  const WireUnit unit = unit_of_bytes(inputs.front());
  const auto sizes = [&](const Tensors& tensors) {
    std::vector<std::uint64_t> counts;
    for (const at::Tensor& tensor : tensors) {
      counts.push_back(static_cast<std::uint64_t>(tensor.numel()) * unit.per_element);
    }
    return counts;
  };
  const at::Tensor target = builder.memory->write_all(outputs);
  const at::Tensor source = builder.memory->apart(builder.memory->read_all(inputs), target);
  OrderedOperation& operation = builder.add(OrderedKind::kAlltoall, unit.type, source);
  operation.blocks = sizes(inputs);
  operation.received_blocks = sizes(outputs);
  operation.input = input_bytes(source);
  operation.output = output_bytes(target);
  return submit(std::move(builder));
}

}  // namespace fasthorovod::torch_binding
