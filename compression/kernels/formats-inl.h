// Formats: how elements in memory become lanes of a computing type, and back. Included once an
// instruction set, by files that hold kernels, here and in ops.
#if defined(FASTHOROVOD_COMPRESSION_KERNELS_FORMATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FASTHOROVOD_COMPRESSION_KERNELS_FORMATS_INL_H
#undef FASTHOROVOD_COMPRESSION_KERNELS_FORMATS_INL_H
#else
#define FASTHOROVOD_COMPRESSION_KERNELS_FORMATS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fasthorovod::compression::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct PlainFormat {
  using Memory = T;
  using Tag = hn::ScalableTag<T>;
  static HWY_INLINE hn::Vec<Tag> load(Tag tag, const Memory* from) { return hn::LoadU(tag, from); }
  static HWY_INLINE void store(Tag tag, hn::Vec<Tag> lanes, Memory* to) {
    hn::StoreU(lanes, tag, to);
  }
};

/// float in memory, double in lanes.
struct WideFloatFormat {
  using Memory = float;
  using Tag = hn::ScalableTag<double>;
  using Narrow = hn::Rebind<float, Tag>;
  static HWY_INLINE hn::Vec<Tag> load(Tag tag, const Memory* from) {
    return hn::PromoteTo(tag, hn::LoadU(Narrow(), from));
  }
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // DemoteTo would make the largest float of an infinity here.
  static HWY_INLINE void store(Tag tag, hn::Vec<Tag> lanes, Memory* to) {
    double wide[hn::MaxLanes(Tag())];
    hn::StoreU(lanes, tag, wide);
    float narrow[hn::MaxLanes(Tag())];
    for (std::size_t i = 0; i < hn::Lanes(tag); ++i) narrow[i] = static_cast<float>(wide[i]);
    std::memcpy(to, narrow, hn::Lanes(tag) * sizeof(float));
  }
#else
  static HWY_INLINE void store(Tag, hn::Vec<Tag> lanes, Memory* to) {
    hn::StoreU(hn::DemoteTo(Narrow(), lanes), Narrow(), to);
  }
#endif
};

/// 16 bits in memory, float in lanes. `Bits` converts between them, in lanes of 32 bits.
template <typename Bits>
struct HalfFormat {
  using Memory = std::uint16_t;
  using Tag = hn::ScalableTag<float>;
  using Lanes32 = hn::RebindToUnsigned<Tag>;
  using Lanes16 = hn::Rebind<std::uint16_t, Tag>;
  static HWY_INLINE hn::Vec<Tag> load(Tag tag, const Memory* from) {
    return Bits::widen(tag, hn::PromoteTo(Lanes32(), hn::LoadU(Lanes16(), from)));
  }
  static HWY_INLINE void store(Tag tag, hn::Vec<Tag> lanes, Memory* to) {
    const hn::RebindToSigned<Tag> signed_tag;
    const auto bits = hn::BitCast(signed_tag, Bits::narrow(tag, lanes));
    hn::StoreU(hn::DemoteTo(Lanes16(), bits), Lanes16(), to);
  }
};

struct Bfloat16Bits {
  template <typename Tag, typename V>
  static HWY_INLINE hn::Vec<Tag> widen(Tag tag, V bits) {
    return hn::BitCast(tag, hn::ShiftLeft<16>(bits));
  }
  // Adds just under half of the last place kept, and the rest of it when that place is odd: ties go
  // to even. The one NaN that comes here, without payload, passes unharmed.
  template <typename Tag, typename V>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<Tag>> narrow(Tag, V lanes) {
    const hn::RebindToUnsigned<Tag> tag32;
    const auto bits = hn::BitCast(tag32, lanes);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(tag32, 1));
    return hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(tag32, 0x7FFF))));
  }
};

struct Float16Bits {
  // Moves the magnitude to where float keeps it and corrects the exponent; infinity and NaN get the
  // rest of float's largest exponent, subnormal numbers are normalised by a subtraction.
  template <typename Tag, typename V>
  static HWY_INLINE hn::Vec<Tag> widen(Tag tag, V half) {
    const hn::RebindToUnsigned<Tag> tag32;
    const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(tag32, 0x7FFF)));
    const auto exponent = hn::And(magnitude, hn::Set(tag32, 0x1FU << 23));
    const auto rebased = hn::Add(magnitude, hn::Set(tag32, (127U - 15U) << 23));
    const auto special = hn::Add(rebased, hn::Set(tag32, (128U - 16U) << 23));
    const auto smallest = hn::BitCast(tag, hn::Set(tag32, (127U - 14U) << 23));
    const auto raised = hn::BitCast(tag, hn::Add(rebased, hn::Set(tag32, 1U << 23)));
    const auto subnormal = hn::BitCast(tag32, hn::Sub(raised, smallest));
    const auto is_special = hn::Eq(exponent, hn::Set(tag32, 0x1FU << 23));
    const auto is_subnormal = hn::Eq(exponent, hn::Zero(tag32));
    const auto normal = hn::IfThenElse(is_special, special, rebased);
    const auto unsigned_result = hn::IfThenElse(is_subnormal, subnormal, normal);
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(tag32, 0x8000)));
    return hn::BitCast(tag, hn::Or(unsigned_result, sign));
  }

  // Normal numbers are rounded as in bfloat16; for subnormal results the addition of 0.5 lets the
  // processor round at the right place.
  template <typename Tag, typename V>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<Tag>> narrow(Tag tag, V lanes) {
    const hn::RebindToUnsigned<Tag> tag32;
    const auto bits = hn::BitCast(tag32, lanes);
    const auto sign = hn::And(bits, hn::Set(tag32, 0x80000000U));
    const auto magnitude = hn::Xor(bits, sign);
    const auto half = hn::Set(tag, 0.5F);
    const auto shifted = hn::Add(hn::BitCast(tag, magnitude), half);
    const auto subnormal = hn::Sub(hn::BitCast(tag32, shifted), hn::BitCast(tag32, half));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(tag32, 1));
    const auto rebased = hn::Sub(magnitude, hn::Set(tag32, (127U - 15U) << 23));
    const auto rounded = hn::Add(rebased, hn::Add(odd, hn::Set(tag32, 0xFFF)));
    const auto normal = hn::ShiftRight<13>(rounded);
    const auto infinity = hn::Set(tag32, 0xFFU << 23);
    const auto overflow =
        hn::IfThenElse(hn::Gt(magnitude, infinity), hn::Set(tag32, 0x7E00), hn::Set(tag32, 0x7C00));
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(tag32, (127U - 14U) << 23));
    const auto is_overflow = hn::Gt(magnitude, hn::Set(tag32, ((127U + 16U) << 23) - 1));
    const auto finite = hn::IfThenElse(is_subnormal, subnormal, normal);
    const auto unsigned_result = hn::IfThenElse(is_overflow, overflow, finite);
    return hn::Or(unsigned_result, hn::ShiftRight<16>(sign));
  }
};

/// float16 by instructions of its own, where the processor has them (they round to nearest even).
struct NativeFloat16Format {
  using Memory = std::uint16_t;
  using Tag = hn::ScalableTag<float>;
  using Lanes16 = hn::Rebind<hwy::float16_t, Tag>;
  using Bits16 = hn::RebindToUnsigned<Lanes16>;
  static HWY_INLINE hn::Vec<Tag> load(Tag tag, const Memory* from) {
    return hn::PromoteTo(tag, hn::BitCast(Lanes16(), hn::LoadU(Bits16(), from)));
  }
  static HWY_INLINE void store(Tag, hn::Vec<Tag> lanes, Memory* to) {
    hn::StoreU(hn::BitCast(Bits16(), hn::DemoteTo(Lanes16(), lanes)), Bits16(), to);
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
using Float16Format = NativeFloat16Format;
#else
using Float16Format = HalfFormat<Float16Bits>;
#endif
using Bfloat16Format = HalfFormat<Bfloat16Bits>;

/// `lanes`, with every NaN replaced by the one NaN that leaves a kernel.
template <typename Tag, typename V>
HWY_INLINE V with_one_nan(Tag tag, V lanes) {
  const hn::RebindToUnsigned<Tag> bits_tag;
  using Bits = hn::TFromD<decltype(bits_tag)>;
  constexpr Bits kQuietNan =
      sizeof(Bits) == 4 ? Bits{0x7FC00000U} : Bits(0x7FF8ULL << (sizeof(Bits) * 8 - 16));
  return hn::IfThenElse(hn::IsNaN(lanes), hn::BitCast(tag, hn::Set(bits_tag, kQuietNan)), lanes);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FASTHOROVOD_COMPRESSION_KERNELS_FORMATS_INL_H
