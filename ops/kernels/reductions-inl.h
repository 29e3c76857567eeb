// Reductions of lanes, and which of them serves a type. Included once an instruction set, by the
// files that reduce (ops/reduce.cc, ops/reduce_many.cc).
#if defined(FASTHOROVOD_OPS_KERNELS_REDUCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FASTHOROVOD_OPS_KERNELS_REDUCTIONS_INL_H
#undef FASTHOROVOD_OPS_KERNELS_REDUCTIONS_INL_H
#else
#define FASTHOROVOD_OPS_KERNELS_REDUCTIONS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "compression/kernels/formats-inl.h"
#include "core/data_type.h"
#include "core/reduction.h"

HWY_BEFORE_NAMESPACE();
namespace fasthorovod::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using compression::HWY_NAMESPACE::Bfloat16Format;
using compression::HWY_NAMESPACE::Float16Format;
using compression::HWY_NAMESPACE::PlainFormat;
using compression::HWY_NAMESPACE::with_one_nan;
using core::DataType;
using core::Reduction;

struct Sum {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Product {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::Mul(a, b);
  }
};

struct Min {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::Min(a, b);
  }
};

struct Max {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::Max(a, b);
  }
};

struct BitAnd {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::Or(a, b);
  }
};

struct BitXor {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::Xor(a, b);
  }
};

// Values that are neither smaller nor larger are equal, but for the sign of a zero, or one is a
// NaN. "Or" keeps the minus of either, and a NaN.
struct FloatMin {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    return hn::IfThenElse(hn::Lt(a, b), a, hn::IfThenElse(hn::Lt(b, a), b, hn::Or(a, b)));
  }
};

// "And" drops the minus of either, but may also turn a NaN into a number, so a sum keeps that.
struct FloatMax {
  template <typename Tag, typename V>
  HWY_INLINE V operator()(Tag, V a, V b) const {
    const V larger =
        hn::IfThenElse(hn::Lt(a, b), b, hn::IfThenElse(hn::Lt(b, a), a, hn::And(a, b)));
    const V sum = hn::Add(a, b);
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), sum, larger);
  }
};

// A kernel has three members, each a template over the format in memory: floats(operation), whose
// results must have one NaN; integers(operation); and products() for lanes whose products vectors
// do not have.

template <typename Format, typename Kernel>
void reduce_floats(const Kernel& kernel, Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
    case Reduction::kSum:
      return kernel.template floats<Format>(Sum());
    case Reduction::kMin:
      return kernel.template floats<Format>(FloatMin());
    case Reduction::kMax:
      return kernel.template floats<Format>(FloatMax());
    case Reduction::kProduct:
      return kernel.template floats<Format>(Product());
    case Reduction::kBitAnd:
    case Reduction::kBitOr:
    case Reduction::kBitXor:
      return;  // refused before
  }
}

template <typename T, typename Kernel>
void multiply(const Kernel& kernel) {
  if constexpr (sizeof(T) == 1 || sizeof(T) == 8) {
    kernel.template products<T>();
  } else {
    kernel.template integers<PlainFormat<T>>(Product());
  }
}

/// Sums and products wrap, and then their bits do not depend on the sign: they are those of the
/// unsigned type.
template <typename T, typename Kernel>
void reduce_integers(const Kernel& kernel, Reduction reduction) {
  using Unsigned = hwy::MakeUnsigned<T>;
  switch (reduction) {
    case Reduction::kAverage:
    case Reduction::kSum:
      return kernel.template integers<PlainFormat<Unsigned>>(Sum());
    case Reduction::kMin:
      return kernel.template integers<PlainFormat<T>>(Min());
    case Reduction::kMax:
      return kernel.template integers<PlainFormat<T>>(Max());
    case Reduction::kProduct:
      return multiply<Unsigned>(kernel);
    case Reduction::kBitAnd:
      return kernel.template integers<PlainFormat<Unsigned>>(BitAnd());
    case Reduction::kBitOr:
      return kernel.template integers<PlainFormat<Unsigned>>(BitOr());
    case Reduction::kBitXor:
      return kernel.template integers<PlainFormat<Unsigned>>(BitXor());
  }
}

/// On 0 and 1, "or" is the larger and "and" the smaller.
template <typename Kernel>
void reduce_bools(const Kernel& kernel, Reduction reduction) {
  if (reduction == Reduction::kBitXor) return reduce_integers<std::uint8_t>(kernel, reduction);
  const bool smaller = reduction == Reduction::kMin || reduction == Reduction::kProduct ||
                       reduction == Reduction::kBitAnd;
  reduce_integers<std::uint8_t>(kernel, smaller ? Reduction::kMin : Reduction::kMax);
}

template <typename Kernel>
void reduce_type(const Kernel& kernel, DataType type, Reduction reduction) {
  switch (type) {
    case DataType::kBool:
      return reduce_bools(kernel, reduction);
    case DataType::kUint8:
      return reduce_integers<std::uint8_t>(kernel, reduction);
    case DataType::kInt8:
      return reduce_integers<std::int8_t>(kernel, reduction);
    case DataType::kUint16:
      return reduce_integers<std::uint16_t>(kernel, reduction);
    case DataType::kInt16:
      return reduce_integers<std::int16_t>(kernel, reduction);
    case DataType::kUint32:
      return reduce_integers<std::uint32_t>(kernel, reduction);
    case DataType::kInt32:
      return reduce_integers<std::int32_t>(kernel, reduction);
    case DataType::kUint64:
      return reduce_integers<std::uint64_t>(kernel, reduction);
    case DataType::kInt64:
      return reduce_integers<std::int64_t>(kernel, reduction);
    case DataType::kFloat16:
      return reduce_floats<Float16Format>(kernel, reduction);
    case DataType::kBfloat16:
      return reduce_floats<Bfloat16Format>(kernel, reduction);
    case DataType::kFloat32:
      return reduce_floats<PlainFormat<float>>(kernel, reduction);
    case DataType::kFloat64:
      return reduce_floats<PlainFormat<double>>(kernel, reduction);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FASTHOROVOD_OPS_KERNELS_REDUCTIONS_INL_H
