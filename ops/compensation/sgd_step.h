// One step of stochastic gradient descent with momentum and weight decay, on flat buffers of
// float32. Kernels for each instruction set Highway knows, chosen at run time. Spans of one call
// have one length and need no alignment. Thread: any; noexcept.
//
// Every product and every sum is rounded for itself, in the order of the formulas below, with no
// fused multiply-add. So no bit of a result depends on the instruction set, or on how a buffer is
// cut into calls: ranks with unlike processors keep equal weights. Every NaN that comes out is the
// positive quiet NaN without payload.
#pragma once

#include <span>

namespace fasthorovod::ops {

/// Of one step.
struct SgdSettings {
  float rate = 0;
  float momentum = 0;
  float weight_decay = 0;
};

/// velocity = momentum * velocity + (gradient + weight_decay * weights); then
/// weights = weights - rate * velocity. No span overlaps another.
void sgd_step(std::span<float> weights, std::span<float> velocity, std::span<const float> gradient,
              const SgdSettings& settings) noexcept;

/// Where sgd_step() would take the weights, written to `to`; weights and velocity stay as they are.
/// A rate of 0 copies the bits of the weights. `to` overlaps none of the others.
void sgd_preview(std::span<float> to, std::span<const float> weights,
                 std::span<const float> velocity, std::span<const float> gradient,
                 const SgdSettings& settings) noexcept;

}  // namespace fasthorovod::ops
