#include "compression/kernels/twobit_codes.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/kernels/twobit_codes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::compression::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kCodesAByte = 4;

// --- One element at a time: what fills no vectors, and everything where there are none. ---

/// How far the pair of an element lies above the lowest bits of its byte.
constexpr unsigned pair_shift(std::size_t element) {
  return 6U - 2U * static_cast<unsigned>(element % kCodesAByte);
}

HWY_INLINE std::uint8_t take_code(float& value, float threshold) {
  const bool is_finite = std::fabs(value) <= kLargest;
  const bool is_over = is_finite && std::fabs(value) >= threshold;
  const bool is_less = is_finite && value < threshold;
  if (is_over) value -= std::copysign(threshold, value);
  return static_cast<std::uint8_t>((is_over ? 2U : 0U) | (is_less ? 0U : 1U));
}

HWY_INLINE void encode_each(float* values, std::size_t count, float threshold, std::byte* codes) {
  for (std::size_t i = 0; i < count; i += kCodesAByte) {
    const std::size_t end = HWY_MIN(count, i + kCodesAByte);
    unsigned byte = 0;
    for (std::size_t e = i; e < end; ++e) {
      byte |= static_cast<unsigned>(take_code(values[e], threshold)) << pair_shift(e);
    }
    codes[i / kCodesAByte] = static_cast<std::byte>(byte);
  }
}

HWY_INLINE void add_each(const std::byte* codes, float* sums, std::size_t count) {
  constexpr float kMeanings[] = {0.0F, kNan, -1.0F, 1.0F};
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned>(codes[i / kCodesAByte]);
    sums[i] += kMeanings[(byte >> pair_shift(i)) & 3U];
  }
}

#if HWY_TARGET == HWY_SCALAR

std::size_t encode_blocks(float* /*values*/, std::size_t /*count*/, float /*threshold*/,
                          std::byte* /*codes*/) {
  return 0;
}

std::size_t add_blocks(const std::byte* /*codes*/, float* /*sums*/, std::size_t /*count*/) {
  return 0;
}

#else

using Tag = hn::CappedTag<float, kTwobitCodesAWord>;
using Lanes = hn::Vec<Tag>;
using Tag32 = hn::RebindToUnsigned<Tag>;

// --- Encoding: comparisons give a bit an element, tables spread the bits over the pairs. ---

constexpr std::size_t kBlock = 64;

/// The upper and lower bits of the codes of a block; bit i is that of element i.
struct CodeBits {
  std::uint64_t upper = 0;
  std::uint64_t lower = 0;
};

template <typename Mask>
HWY_INLINE std::uint64_t bits_of(Mask mask) {
  std::uint8_t bytes[8];  // as much as Highway asks for
  if (hn::StoreMaskBits(Tag(), mask, bytes) == 1) return bytes[0];
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

/// Takes from the values of a block what their codes say.
HWY_INLINE CodeBits take_block(float* values, Lanes threshold) {
  const Tag tag;
  const Lanes largest = hn::Set(tag, kLargest);
  CodeBits bits;
  for (std::size_t i = 0; i < kBlock; i += hn::Lanes(tag)) {
    const Lanes value = hn::LoadU(tag, values + i);
    const Lanes magnitude = hn::Abs(value);
    const auto is_finite = hn::Le(magnitude, largest);
    const auto is_over = hn::And(is_finite, hn::Ge(magnitude, threshold));
    const auto is_less = hn::And(is_finite, hn::Lt(value, threshold));
    const Lanes left = hn::Sub(value, hn::CopySignToAbs(threshold, value));
    hn::StoreU(hn::IfThenElse(is_over, left, value), tag, values + i);
    bits.upper |= bits_of(is_over) << i;
    bits.lower |= bits_of(is_less) << i;
  }
  bits.lower = ~bits.lower;
  return bits;
}

/// A byte of codes has a bit of each of four elements in its even places and one in its odd places:
/// the tables give those for four bits in a row.
HWY_INLINE void store_codes(CodeBits bits, std::byte* codes) {
  HWY_ALIGN static constexpr std::uint8_t kLower[16] = {0x00, 0x40, 0x10, 0x50, 0x04, 0x44,
                                                        0x14, 0x54, 0x01, 0x41, 0x11, 0x51,
                                                        0x05, 0x45, 0x15, 0x55};
  const hn::FixedTag<std::uint8_t, 16> tag8;
  const hn::FixedTag<std::uint16_t, 8> tag16;
  const hn::FixedTag<std::uint64_t, 2> tag64;
  const auto both =
      hn::InterleaveLower(tag64, hn::Set(tag64, bits.upper), hn::Set(tag64, bits.lower));
  const auto four_bits = hn::Set(tag8, 0x0F);
  const auto even = hn::And(hn::BitCast(tag8, both), four_bits);
  const auto shifted = hn::BitCast(tag8, hn::ShiftRight<4>(hn::BitCast(tag16, both)));
  const auto odd = hn::And(shifted, four_bits);
  const auto table = hn::Load(tag8, kLower);
  const auto upper = hn::TableLookupBytes(table, hn::InterleaveLower(tag8, even, odd));
  const auto lower = hn::TableLookupBytes(table, hn::InterleaveUpper(tag8, even, odd));
  const auto result = hn::Or(hn::Add(upper, upper), lower);
  hn::StoreU(result, tag8, reinterpret_cast<std::uint8_t*>(codes));
}

std::size_t encode_blocks(float* values, std::size_t count, float threshold_value,
                          std::byte* codes) {
  const Lanes threshold = hn::Set(Tag(), threshold_value);
  std::size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    store_codes(take_block(values + i, threshold), codes + i / kCodesAByte);
  }
  return i;
}

// --- Adding: a multiplication moves the pair of each lane to the top of it. ---

HWY_INLINE Lanes meanings_of(std::uint32_t word, const std::uint32_t* factors) {
  HWY_ALIGN static constexpr float kMeanings[4] = {0.0F, kNan, -1.0F, 1.0F};
  const Tag tag;
  const Tag32 tag32;
  const auto moved = hn::Mul(hn::Set(tag32, word), hn::Load(tag32, factors));
  const auto indices = hn::IndicesFromVec(tag, hn::ShiftRight<30>(moved));
  return hn::TableLookupLanes(hn::LoadDup128(tag, kMeanings), indices);
}

std::size_t add_blocks(const std::byte* codes, float* sums, std::size_t count) {
  // Element e has its pair at bit 8 (e / 4) + 6 - 2 (e % 4) of the word.
  HWY_ALIGN static constexpr std::uint32_t kFactors[kTwobitCodesAWord] = {
      1U << 24, 1U << 26, 1U << 28, 1U << 30, 1U << 16, 1U << 18, 1U << 20, 1U << 22,
      1U << 8,  1U << 10, 1U << 12, 1U << 14, 1U << 0,  1U << 2,  1U << 4,  1U << 6};
  const Tag tag;
  std::size_t i = 0;
  for (; i + kTwobitCodesAWord <= count; i += kTwobitCodesAWord) {
    std::uint32_t word = 0;
    std::memcpy(&word, codes + i / kCodesAByte, sizeof(word));
    for (std::size_t e = 0; e < kTwobitCodesAWord; e += hn::Lanes(tag)) {
      const Lanes sum = hn::Add(hn::LoadU(tag, sums + i + e), meanings_of(word, kFactors + e));
      hn::StoreU(sum, tag, sums + i + e);
    }
  }
  return i;
}

#endif  // HWY_SCALAR

void encode_values(float* values, std::size_t count, float threshold, std::byte* codes) {
  const std::size_t words = (count + kTwobitCodesAWord - 1) / kTwobitCodesAWord;
  const std::size_t bytes = (count + kCodesAByte - 1) / kCodesAByte;
  std::memset(codes + bytes, 0, words * kTwobitWordBytes - bytes);
  const std::size_t done = encode_blocks(values, count, threshold, codes);
  encode_each(values + done, count - done, threshold, codes + done / kCodesAByte);
}

void add_codes(const std::byte* codes, float* sums, std::size_t count) {
  const std::size_t done = add_blocks(codes, sums, count);
  add_each(codes + done / kCodesAByte, sums + done, count - done);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::compression {
namespace {
HWY_EXPORT(encode_values);
HWY_EXPORT(add_codes);
}  // namespace

void encode_twobit(std::span<float> values, float threshold, std::byte* codes) noexcept {
  HWY_DYNAMIC_DISPATCH(encode_values)(values.data(), values.size(), threshold, codes);
}

void add_twobit(const std::byte* codes, std::span<float> sums) noexcept {
  HWY_DYNAMIC_DISPATCH(add_codes)(codes, sums.data(), sums.size());
}

}  // namespace fasthorovod::compression
#endif  // HWY_ONCE
