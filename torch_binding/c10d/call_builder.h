// A call on its way to the engine: what its Work needs, the memory it lends, and the operations
// that do it (several for coalesced calls).
//
// Nothing is submitted here. Arguments that can never work throw a ValueError.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ops/ordered.h"
#include "torch_binding/c10d/host_memory.h"
#include "torch_binding/c10d/reducing.h"
#include "torch_binding/c10d/work.h"

namespace fasthorovod::torch_binding {

struct CallBuilder {
  using Tensors = std::vector<at::Tensor>;

  /// `title` is static: "fasthorovod:all_reduce".
  CallBuilder(c10d::OpType type, const char* title, std::chrono::milliseconds limit);

  /// One more operation, without its data. `described` is what messages speak of.
  ops::OrderedOperation& add(ops::OrderedKind kind, core::DataType type,
                             const at::Tensor& described);

  // One more operation with its data. Lists: one tensor a rank, or one tensor with all blocks.
  void all_reduce(const at::Tensor& tensor, const Reducing& how);
  void all_gather(const Tensors& outputs, const at::Tensor& input);
  void reduce_scatter(const at::Tensor& output, const Tensors& inputs, const Reducing& how);
  /// No outputs: this rank is not the root.
  void gather(const Tensors& outputs, const at::Tensor& input, int root);

  Call call;
  std::shared_ptr<HostMemory> memory = std::make_shared<HostMemory>();  // owners: see Call
  std::vector<ops::OrderedOperation> operations;
};

/// "send of 12 float32", for messages.
std::string describe(const char* what, const at::Tensor& tensor);

}  // namespace fasthorovod::torch_binding
