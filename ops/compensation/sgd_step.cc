#include "ops/compensation/sgd_step.h"

#include <algorithm>
#include <cstddef>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/compensation/sgd_step.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "compression/kernels/formats-inl.h"

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set, with -ffp-contract=off:
// the compiler would fuse products and sums where an instruction set lets it.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using compression::HWY_NAMESPACE::with_one_nan;
using Tag = hn::ScalableTag<float>;
using Lanes = hn::Vec<Tag>;

HWY_INLINE Lanes next_velocity(Lanes weights, Lanes velocity, Lanes gradient,
                               const SgdSettings& settings) {
  const Tag tag;
  const Lanes decay = hn::Mul(hn::Set(tag, settings.weight_decay), weights);
  const Lanes kept = hn::Mul(hn::Set(tag, settings.momentum), velocity);
  return hn::Add(kept, hn::Add(gradient, decay));
}

HWY_INLINE Lanes next_weights(Lanes weights, Lanes velocity, const SgdSettings& settings) {
  const Tag tag;
  return with_one_nan(tag, hn::Sub(weights, hn::Mul(hn::Set(tag, settings.rate), velocity)));
}

HWY_INLINE void step_vector(float* weights, float* velocity, const float* gradient,
                            const SgdSettings& settings) {
  const Tag tag;
  const Lanes old = hn::LoadU(tag, weights);
  const Lanes speed =
      next_velocity(old, hn::LoadU(tag, velocity), hn::LoadU(tag, gradient), settings);
  hn::StoreU(with_one_nan(tag, speed), tag, velocity);
  hn::StoreU(next_weights(old, speed, settings), tag, weights);
}

HWY_INLINE void preview_vector(float* to, const float* weights, const float* velocity,
                               const float* gradient, const SgdSettings& settings) {
  const Tag tag;
  const Lanes old = hn::LoadU(tag, weights);
  const Lanes speed =
      next_velocity(old, hn::LoadU(tag, velocity), hn::LoadU(tag, gradient), settings);
  hn::StoreU(next_weights(old, speed, settings), tag, to);
}

/// The elements from `begin` on, which fill no vector, in memory of a vector's size.
struct Rest {
  Rest(std::span<const float> values, std::size_t begin) {
    std::copy(values.begin() + static_cast<std::ptrdiff_t>(begin), values.end(), memory);
  }
  float memory[hn::MaxLanes(Tag())] = {};
};

void step_all(std::span<float> weights, std::span<float> velocity, std::span<const float> gradient,
              const SgdSettings& settings) {
  const std::size_t lanes = hn::Lanes(Tag());
  std::size_t i = 0;
  for (; i + lanes <= weights.size(); i += lanes) {
    step_vector(&weights[i], &velocity[i], &gradient[i], settings);
  }
  Rest last_weights(weights, i);
  Rest last_velocity(velocity, i);
  const Rest last_gradient(gradient, i);
  step_vector(last_weights.memory, last_velocity.memory, last_gradient.memory, settings);
  std::copy_n(last_weights.memory, weights.size() - i,
              weights.begin() + static_cast<std::ptrdiff_t>(i));
  std::copy_n(last_velocity.memory, weights.size() - i,
              velocity.begin() + static_cast<std::ptrdiff_t>(i));
}

void preview_all(std::span<float> to, std::span<const float> weights,
                 std::span<const float> velocity, std::span<const float> gradient,
                 const SgdSettings& settings) {
  const std::size_t lanes = hn::Lanes(Tag());
  std::size_t i = 0;
  for (; i + lanes <= to.size(); i += lanes) {
    preview_vector(&to[i], &weights[i], &velocity[i], &gradient[i], settings);
  }
  Rest last(weights, i);
  const Rest last_velocity(velocity, i);
  const Rest last_gradient(gradient, i);
  float result[hn::MaxLanes(Tag())];
  preview_vector(result, last.memory, last_velocity.memory, last_gradient.memory, settings);
  std::copy_n(result, to.size() - i, to.begin() + static_cast<std::ptrdiff_t>(i));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::ops {
namespace {
HWY_EXPORT(step_all);
HWY_EXPORT(preview_all);
}  // namespace

void sgd_step(std::span<float> weights, std::span<float> velocity, std::span<const float> gradient,
              const SgdSettings& settings) noexcept {
  HWY_DYNAMIC_DISPATCH(step_all)(weights, velocity, gradient, settings);
}

void sgd_preview(std::span<float> to, std::span<const float> weights,
                 std::span<const float> velocity, std::span<const float> gradient,
                 const SgdSettings& settings) noexcept {
  // A product with zero is no zero when the other factor is infinite.
  if (settings.rate == 0) return void(std::copy(weights.begin(), weights.end(), to.begin()));
  HWY_DYNAMIC_DISPATCH(preview_all)(to, weights, velocity, gradient, settings);
}

}  // namespace fasthorovod::ops
#endif  // HWY_ONCE
