#include "ops/reduce.h"

#include <cstdint>
#include <cstring>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/kernels/reductions-inl.h"

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::ops::HWY_NAMESPACE {

template <typename Operation>
struct WithOneNan {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag tag, V a, V b) const {
    return with_one_nan(tag, Operation()(tag, a, b));
  }
};

/// The elements that fill no vector, at most kLanes: through vectors of their own, so that they get
/// the same bits.
template <typename Format, typename Operation>
HWY_INLINE void reduce_rest(typename Format::Memory* into, const typename Format::Memory* from,
                            std::size_t count, Operation operation) {
  const typename Format::Tag tag;
  typename Format::Memory left[hn::MaxLanes(tag)] = {};
  typename Format::Memory right[hn::MaxLanes(tag)] = {};
  std::memcpy(left, into, count * sizeof(left[0]));
  std::memcpy(right, from, count * sizeof(left[0]));
  Format::store(tag, operation(tag, Format::load(tag, left), Format::load(tag, right)), left);
  std::memcpy(into, left, count * sizeof(left[0]));
}

/// accumulator[i] = operation(accumulator[i], values[i]).
struct IntoKernel {
  std::byte* accumulator;
  const std::byte* values;
  std::size_t count;

  template <typename Format, typename Operation>
  void floats(Operation) const {
    integers<Format>(WithOneNan<Operation>());
  }

  template <typename Format, typename Operation>
  void integers(Operation operation) const {
    using Memory = typename Format::Memory;
    const typename Format::Tag tag;
    const std::size_t lanes = hn::Lanes(tag);
    auto* into = reinterpret_cast<Memory*>(accumulator);
    const auto* from = reinterpret_cast<const Memory*>(values);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const auto left = Format::load(tag, into + i);
      const auto right = Format::load(tag, from + i);
      Format::store(tag, operation(tag, left, right), into + i);
    }
    if (i < count) reduce_rest<Format>(into + i, from + i, count - i, operation);
  }

  /// `T` is unsigned: the low bits of a product know no sign.
  template <typename T>
  void products() const {
    for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {
      T left = 0;
      T right = 0;
      std::memcpy(&left, accumulator + i, sizeof(T));
      std::memcpy(&right, values + i, sizeof(T));
      left = static_cast<T>(left * right);
      std::memcpy(accumulator + i, &left, sizeof(T));
    }
  }
};

void reduce_spans(std::byte* accumulator, const std::byte* values, std::size_t count, DataType type,
                  Reduction reduction) {
  reduce_type(IntoKernel{accumulator, values, count}, type, reduction);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::ops {
namespace {
HWY_EXPORT(reduce_spans);
}  // namespace

void reduce_into(std::byte* accumulator, const std::byte* values, std::size_t count,
                 core::DataType type, core::Reduction reduction) noexcept {
  HWY_DYNAMIC_DISPATCH(reduce_spans)(accumulator, values, count, type, reduction);
}

}  // namespace fasthorovod::ops
#endif  // HWY_ONCE
