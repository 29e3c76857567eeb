// The part of fasthorovod._C that torch.distributed calls.
#pragma once

#include <pybind11/pybind11.h>

#include "torch_binding/engine_holder.h"

namespace fasthorovod::torch_binding {

/// `holder` lives as long as the process.
void bind_c10d(pybind11::module_& module, EngineHolder& holder);

}  // namespace fasthorovod::torch_binding
