#include "compression/residual.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/residual.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::compression::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

void scale_values(const float* input, float scale, float* values, std::size_t count) {
  const Tag tag;
  const auto factor = hn::Set(tag, scale);
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(tag, input + i), factor), tag, values + i);
  }
  for (; i < count; ++i) values[i] = scale * input[i];
}

void scale_and_add(const float* input, const float* residual, float scale, float* values,
                   std::size_t count) {
  const Tag tag;
  const auto factor = hn::Set(tag, scale);
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(tag, input + i), factor);
    hn::StoreU(hn::Add(scaled, hn::LoadU(tag, residual + i)), tag, values + i);
  }
  for (; i < count; ++i) values[i] = scale * input[i] + residual[i];
}

void keep_finite(const float* left, float* residual, std::size_t count) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Tag tag;
  const auto largest = hn::Set(tag, kLargest);
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(tag, left + i);
    const auto is_finite = hn::Le(hn::Abs(value), largest);
    hn::StoreU(hn::IfThenElse(is_finite, value, hn::LoadU(tag, residual + i)), tag, residual + i);
  }
  for (; i < count; ++i) {
    if (std::fabs(left[i]) <= kLargest) residual[i] = left[i];
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::compression {
namespace {
HWY_EXPORT(scale_values);
HWY_EXPORT(scale_and_add);
HWY_EXPORT(keep_finite);
}  // namespace

void compensate(std::span<const float> input, std::span<const float> residual, float scale,
                std::span<float> values) {
  if (residual.empty()) {
    HWY_DYNAMIC_DISPATCH(scale_values)(input.data(), scale, values.data(), input.size());
  } else {
    HWY_DYNAMIC_DISPATCH(scale_and_add)
    (input.data(), residual.data(), scale, values.data(), input.size());
  }
}

void keep(std::span<const float> left, std::span<float> residual) {
  HWY_DYNAMIC_DISPATCH(keep_finite)(left.data(), residual.data(), left.size());
}

}  // namespace fasthorovod::compression
#endif  // HWY_ONCE
