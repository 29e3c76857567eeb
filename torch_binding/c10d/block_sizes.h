// How many wire units each rank's block of an operation has. Empty: the blocks are equal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "torch_binding/c10d/host_memory.h"

namespace fasthorovod::torch_binding {

/// A block a tensor.
std::vector<std::uint64_t> block_sizes(const std::vector<at::Tensor>& tensors, WireUnit unit);

/// Blocks of an all-to-all, from splits along the first dimension of `tensor`; without splits it is
/// divided evenly. ValueError when that cannot be.
std::vector<std::uint64_t> split_sizes(const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                       int size, WireUnit unit, const char* what);

}  // namespace fasthorovod::torch_binding
