// Tensors in the memory that the ranks of a host share: made one by one, or by torch itself while
// an allocator of ours stands before its own.
#pragma once

#include <pybind11/pybind11.h>

namespace fasthorovod::torch_binding {

/// Adds empty_shared, share_allocations and shared_allocations to the module.
void bind_shared_tensors(pybind11::module_& module);

}  // namespace fasthorovod::torch_binding
