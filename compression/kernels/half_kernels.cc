#include "compression/kernels/half_kernels.h"

#include <cstring>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/kernels/half_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "compression/kernels/formats-inl.h"

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::compression::HWY_NAMESPACE {

using Tag = hn::ScalableTag<float>;
using Lanes = hn::Vec<Tag>;
using Half = std::uint16_t;

// Each kernel handles one vector. Elements that fill none go through memory of a vector's size, so
// that they get the same bits.

template <typename Format>
struct Narrow {
  Lanes factor;

  HWY_INLINE void operator()(const float* values, Half* halves) const {
    const Lanes product = hn::Mul(hn::LoadU(Tag(), values), factor);
    Format::store(Tag(), with_one_nan(Tag(), product), halves);
  }
};

template <typename Format>
struct Widen {
  HWY_INLINE void operator()(const Half* halves, float* values) const {
    hn::StoreU(with_one_nan(Tag(), Format::load(Tag(), halves)), Tag(), values);
  }
};

template <typename Format>
struct WidenAndAdd {
  HWY_INLINE void operator()(const Half* halves, float* sums) const {
    const Lanes sum = hn::Add(hn::LoadU(Tag(), sums), Format::load(Tag(), halves));
    hn::StoreU(with_one_nan(Tag(), sum), Tag(), sums);
  }
};

template <typename From, typename To, typename Kernel>
HWY_INLINE void for_each_vector(const From* from, To* to, std::size_t count, const Kernel& kernel) {
  const std::size_t lanes = hn::Lanes(Tag());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) kernel(from + i, to + i);
  if (i == count) return;
  From last_from[hn::MaxLanes(Tag())] = {};
  To last_to[hn::MaxLanes(Tag())] = {};
  std::memcpy(last_from, from + i, (count - i) * sizeof(From));
  std::memcpy(last_to, to + i, (count - i) * sizeof(To));
  kernel(last_from, last_to);
  std::memcpy(to + i, last_to, (count - i) * sizeof(To));
}

void narrow_values(const float* values, std::size_t count, float factor_value, HalfType type,
                   std::byte* bytes) {
  auto* halves = reinterpret_cast<Half*>(bytes);
  const Lanes factor = hn::Set(Tag(), factor_value);
  if (type == HalfType::kFloat16) {
    for_each_vector(values, halves, count, Narrow<Float16Format>{factor});
  } else {
    for_each_vector(values, halves, count, Narrow<Bfloat16Format>{factor});
  }
}

void widen_halves(const std::byte* bytes, HalfType type, float* values, std::size_t count) {
  const auto* halves = reinterpret_cast<const Half*>(bytes);
  if (type == HalfType::kFloat16) {
    for_each_vector(halves, values, count, Widen<Float16Format>());
  } else {
    for_each_vector(halves, values, count, Widen<Bfloat16Format>());
  }
}

void add_halves(const std::byte* bytes, HalfType type, float* sums, std::size_t count) {
  const auto* halves = reinterpret_cast<const Half*>(bytes);
  if (type == HalfType::kFloat16) {
    for_each_vector(halves, sums, count, WidenAndAdd<Float16Format>());
  } else {
    for_each_vector(halves, sums, count, WidenAndAdd<Bfloat16Format>());
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::compression {
namespace {
HWY_EXPORT(narrow_values);
HWY_EXPORT(widen_halves);
HWY_EXPORT(add_halves);
}  // namespace

void narrow(std::span<const float> values, float factor, HalfType type,
            std::byte* halves) noexcept {
  HWY_DYNAMIC_DISPATCH(narrow_values)(values.data(), values.size(), factor, type, halves);
}

void widen(const std::byte* halves, HalfType type, std::span<float> values) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_halves)(halves, type, values.data(), values.size());
}

void widen_and_add(const std::byte* halves, HalfType type, std::span<float> sums) noexcept {
  HWY_DYNAMIC_DISPATCH(add_halves)(halves, type, sums.data(), sums.size());
}

}  // namespace fasthorovod::compression
#endif  // HWY_ONCE
