// What a root hands out: broadcast and scatter.
#include <c10/util/Exception.h>

#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/backend.h"
#include "torch_binding/c10d/block_sizes.h"

namespace fasthorovod::torch_binding {

using c10d::OpType;
using ops::OrderedKind;
using ops::OrderedOperation;

c10::intrusive_ptr<c10d::Work> EngineBackend::broadcast(Tensors& tensors,
                                                        const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only(tensors, "broadcast");
  CallBuilder builder(OpType::BROADCAST, "fasthorovod:broadcast", limit(options.timeout));
  builder.call.inputs = builder.call.results = tensors;
  const WireUnit unit = unit_of_bytes(tensor);
  const bool is_root = options.rootRank == rank_;
  const at::Tensor whole =
      is_root ? builder.memory->read(tensor) : builder.memory->write(tensor, false);
  OrderedOperation& operation = builder.add(OrderedKind::kBroadcast, unit.type, tensor);
  operation.root = static_cast<int>(options.rootRank);
  operation.output = output_bytes(whole);
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                                      const c10d::ScatterOptions& options) {
  const at::Tensor& output = only(outputs, "scatter");
  CallBuilder builder(OpType::SCATTER, "fasthorovod:scatter", limit(options.timeout));
  builder.call.results = outputs;
  const WireUnit unit = unit_of_bytes(output);
  const at::Tensor block = builder.memory->write(output, false);
  std::vector<std::uint64_t> blocks;
  at::Tensor whole;
  if (options.rootRank == rank_) {
    TORCH_CHECK_VALUE(inputs.size() == 1, "scatter: the root needs one list of inputs");
    check_count(inputs.front().size(), size_, "scatter");
    for (const at::Tensor& input : inputs.front()) check_same_type(input, output);
    builder.call.inputs = inputs.front();
    whole = builder.memory->apart(builder.memory->read_all(inputs.front()), block);
    blocks = block_sizes(inputs.front(), unit);
  } else {
    TORCH_CHECK_VALUE(inputs.empty() || inputs.front().empty(),
                      "scatter: only the root has inputs");
  }
  OrderedOperation& operation = builder.add(OrderedKind::kScatter, unit.type, output);
  operation.root = static_cast<int>(options.rootRank);
  operation.blocks = std::move(blocks);
  if (whole.defined()) operation.input = input_bytes(whole);
  operation.output = output_bytes(block);
  return submit(std::move(builder));
}

}  // namespace fasthorovod::torch_binding
