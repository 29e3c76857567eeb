// What brings blocks together: all-gather and gather.
#include <c10/util/Exception.h>

#include <utility>

#include "torch_binding/c10d/argument_checks.h"
#include "torch_binding/c10d/backend.h"

namespace fasthorovod::torch_binding {

using c10d::OpType;

c10::intrusive_ptr<c10d::Work> EngineBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only(inputs, "all_gather");
  TORCH_CHECK_VALUE(outputs.size() == 1, "all_gather: one list of outputs is expected");
  check_count(outputs.front().size(), size_, "all_gather");
  CallBuilder builder(OpType::ALLGATHER, "fasthorovod:all_gather", limit(options.timeout));
  builder.call.inputs = inputs;
  builder.call.results = outputs.front();
  builder.call.list_length = outputs.front().size();
  builder.all_gather(outputs.front(), input);
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::_allgather_base(
    at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  check_parts(output, input, size_, "all_gather_into_tensor");
  CallBuilder builder(OpType::_ALLGATHER_BASE, "fasthorovod:_all_gather_base",
                      limit(options.timeout));
  builder.call.inputs = {input};
  builder.call.results = {output};
  builder.all_gather({output}, input);
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::allgather_coalesced(
    TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_count(outputs.size(), size_, "all_gather_coalesced");
  CallBuilder builder(OpType::ALLGATHER_COALESCED, "fasthorovod:all_gather",
                      limit(options.timeout));
  builder.call.inputs = inputs;
  for (const Tensors& of_rank : outputs) {
    TORCH_CHECK_VALUE(of_rank.size() == inputs.size(),
                      "all_gather_coalesced: each rank's outputs must be as many as the inputs");
    builder.call.results.insert(builder.call.results.end(), of_rank.begin(), of_rank.end());
  }
  builder.call.list_length = inputs.size();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors targets;
    for (const Tensors& of_rank : outputs) targets.push_back(of_rank[i]);
    builder.all_gather(targets, inputs[i]);
  }
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "all_gather_into_tensor_coalesced: as many outputs as inputs are expected");
  CallBuilder builder(OpType::ALLGATHER_INTO_TENSOR_COALESCED, "fasthorovod:_all_gather_base",
                      limit(options.timeout));
  builder.call.inputs = inputs;
  builder.call.results = outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_parts(outputs[i], inputs[i], size_, "all_gather_into_tensor_coalesced");
    builder.all_gather({outputs[i]}, inputs[i]);
  }
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::gather(TensorLists& outputs, Tensors& inputs,
                                                     const c10d::GatherOptions& options) {
  const at::Tensor& input = only(inputs, "gather");
  CallBuilder builder(OpType::GATHER, "fasthorovod:gather", limit(options.timeout));
  builder.call.inputs = inputs;
  Tensors targets;
  if (options.rootRank == rank_) {
    TORCH_CHECK_VALUE(outputs.size() == 1, "gather: the root needs one list of outputs");
    check_count(outputs.front().size(), size_, "gather");
    targets = outputs.front();
    builder.call.results = targets;
    builder.call.list_length = targets.size();
  } else {
    TORCH_CHECK_VALUE(outputs.empty() || outputs.front().empty(),
                      "gather: only the root has outputs");
  }
  builder.gather(targets, input, static_cast<int>(options.rootRank));
  return submit(std::move(builder));
}

c10::intrusive_ptr<c10d::Work> EngineBackend::gather_into_tensor(
    at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) {
  CallBuilder builder(OpType::GATHER, "fasthorovod:gather", limit(options.timeout));
  builder.call.inputs = {input};
  Tensors targets;
  if (options.rootRank == rank_) {
    check_parts(output, input, size_, "gather_into_tensor");
    targets = {output};
    builder.call.results = targets;
  }
  builder.gather(targets, input, static_cast<int>(options.rootRank));
  return submit(std::move(builder));
}

}  // namespace fasthorovod::torch_binding
