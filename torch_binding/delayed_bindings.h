// Python's way to the rules that delay the update of the weights (ops/compensation).
#pragma once

#include <pybind11/pybind11.h>

namespace fasthorovod::torch_binding {

/// Adds the class DelayedSgd and the function check_delayed.
void bind_delayed(pybind11::module_& module);

}  // namespace fasthorovod::torch_binding
