// Torch's reductions in the engine's terms.
#pragma once

#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "core/reduction.h"

namespace fasthorovod::torch_binding {

struct Reducing {
  core::Reduction reduction = core::Reduction::kSum;
  double prescale = 1.0;
};

/// ValueError for ReduceOp.UNUSED, and for a PREMUL_SUM without its factor.
Reducing reducing(const c10d::ReduceOp& op);

/// Complex values as pairs of real ones, where that is the same; ValueError where it is not.
at::Tensor as_values(const at::Tensor& tensor, const Reducing& how);

}  // namespace fasthorovod::torch_binding
