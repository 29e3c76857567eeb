#include "compression/kernels/twobit_answers.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compression/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/kernels/twobit_answers.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Everything up to HWY_AFTER_NAMESPACE is compiled once an instruction set.
HWY_BEFORE_NAMESPACE();
namespace fasthorovod::compression::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(std::endian::native == std::endian::little);

using Tag = hn::ScalableTag<float>;
using Lanes = hn::Vec<Tag>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Sums of 4 bits are written and read as bytes first, this many at a time.
constexpr std::size_t kPiece = 1024;

// --- Between float32 and whole numbers of 8 and 16 bits; `mark` stands for NaN. ---

/// One vector. `to` needs no alignment.
template <typename T>
HWY_INLINE void write_vector(const float* sums, T mark, T* to) {
  using Unsigned = std::make_unsigned_t<T>;
  const Tag tag;
  const hn::RebindToUnsigned<Tag> tag32;
  const hn::Rebind<Unsigned, Tag> narrow_tag;
  const Lanes sum = hn::LoadU(tag, sums);
  const auto is_finite = hn::Le(hn::Abs(sum), hn::Set(tag, std::numeric_limits<float>::max()));
  const Lanes marked = hn::IfThenElse(is_finite, sum, hn::Set(tag, static_cast<float>(mark)));
  // 1.5 * 2^23 pushes all but the whole number out of the fraction, which holds it in two's
  // complement then.
  const auto bits = hn::BitCast(tag32, hn::Add(marked, hn::Set(tag, 12582912.0F)));
  hn::StoreU(hn::TruncateTo(narrow_tag, bits), narrow_tag, reinterpret_cast<Unsigned*>(to));
}

template <typename T>
HWY_INLINE void read_vector(const T* from, T mark, Lanes unit, float* values) {
  const Tag tag;
  const hn::RebindToSigned<Tag> tag32;
  const auto sum = hn::PromoteTo(tag32, hn::LoadU(hn::Rebind<T, Tag>(), from));
  const auto is_marked = hn::RebindMask(tag, hn::Eq(sum, hn::Set(tag32, mark)));
  const Lanes value = hn::Mul(hn::ConvertTo(tag, sum), unit);
  hn::StoreU(hn::IfThenElse(is_marked, hn::Set(tag, kNan), value), tag, values);
}

/// The elements that fill no vector go through memory of a vector's size.
template <typename T>
HWY_INLINE void write_numbers(const float* sums, std::size_t count, T mark, T* to) {
  const std::size_t lanes = hn::Lanes(Tag());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) write_vector(sums + i, mark, to + i);
  if (i == count) return;
  float last_sums[hn::MaxLanes(Tag())] = {};
  T last[hn::MaxLanes(Tag())];
  std::memcpy(last_sums, sums + i, (count - i) * sizeof(float));
  write_vector(last_sums, mark, last);
  std::memcpy(to + i, last, (count - i) * sizeof(T));
}

template <typename T>
HWY_INLINE void read_numbers(const T* from, T mark, float unit_value, float* values,
                             std::size_t count) {
  const std::size_t lanes = hn::Lanes(Tag());
  const Lanes unit = hn::Set(Tag(), unit_value);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) read_vector(from + i, mark, unit, values + i);
  if (i == count) return;
  T last[hn::MaxLanes(Tag())] = {};
  float last_values[hn::MaxLanes(Tag())];
  std::memcpy(last, from + i, (count - i) * sizeof(T));
  read_vector(last, mark, unit, last_values);
  std::memcpy(values + i, last_values, (count - i) * sizeof(float));
}

// --- Between bytes and halves of bytes, kPiece at a time. ---

using PairTag = hn::ScalableTag<std::uint16_t>;
using ByteTag = hn::Rebind<std::uint8_t, PairTag>;

/// Lanes of two numbers become lanes of a byte.
HWY_INLINE void pack_piece(const std::int8_t* numbers, std::uint8_t* bytes) {
  const PairTag tag;
  for (std::size_t i = 0; i < kPiece / 2; i += hn::Lanes(tag)) {
    const auto pair = hn::Load(tag, reinterpret_cast<const std::uint16_t*>(numbers) + i);
    const auto first = hn::And(pair, hn::Set(tag, 0x000F));
    const auto second = hn::And(hn::ShiftRight<4>(pair), hn::Set(tag, 0x00F0));
    hn::StoreU(hn::TruncateTo(ByteTag(), hn::Or(first, second)), ByteTag(), bytes + i);
  }
}

HWY_INLINE void unpack_piece(const std::uint8_t* bytes, std::int8_t* numbers) {
  const PairTag tag;
  for (std::size_t i = 0; i < kPiece / 2; i += hn::Lanes(tag)) {
    const auto pair = hn::PromoteTo(tag, hn::LoadU(ByteTag(), bytes + i));
    const auto apart = hn::And(hn::Or(pair, hn::ShiftLeft<4>(pair)), hn::Set(tag, 0x0F0F));
    const auto signs = hn::And(apart, hn::Set(tag, 0x0808));
    const auto extended = hn::Or(apart, hn::Mul(signs, hn::Set(tag, 0x1E)));
    hn::Store(extended, tag, reinterpret_cast<std::uint16_t*>(numbers) + i);
  }
}

constexpr std::int8_t kMark4 = -8;
constexpr std::int8_t kMark8 = std::numeric_limits<std::int8_t>::min();
constexpr std::int16_t kMark16 = std::numeric_limits<std::int16_t>::min();

void write_halves(const float* sums, std::size_t count, std::uint8_t* answer) {
  HWY_ALIGN std::int8_t numbers[kPiece];
  for (; count >= kPiece; count -= kPiece, sums += kPiece, answer += kPiece / 2) {
    write_numbers(sums, kPiece, kMark4, numbers);
    pack_piece(numbers, answer);
  }
  if (count == 0) return;
  std::uint8_t last[kPiece / 2];
  std::memset(numbers, 0, sizeof(numbers));
  write_numbers(sums, count, kMark4, numbers);
  pack_piece(numbers, last);
  std::memcpy(answer, last, (count + 1) / 2);
}

void read_halves(const std::uint8_t* answer, float unit, float* values, std::size_t count) {
  HWY_ALIGN std::int8_t numbers[kPiece];
  for (; count >= kPiece; count -= kPiece, values += kPiece, answer += kPiece / 2) {
    unpack_piece(answer, numbers);
    read_numbers(numbers, kMark4, unit, values, kPiece);
  }
  if (count == 0) return;
  std::uint8_t last[kPiece / 2] = {};
  std::memcpy(last, answer, (count + 1) / 2);
  unpack_piece(last, numbers);
  read_numbers(numbers, kMark4, unit, values, count);
}

void write_all(const float* sums, std::size_t count, SumBits bits, std::byte* answer) {
  switch (bits) {
    case SumBits::k4:
      return write_halves(sums, count, reinterpret_cast<std::uint8_t*>(answer));
    case SumBits::k8:
      return write_numbers(sums, count, kMark8, reinterpret_cast<std::int8_t*>(answer));
    case SumBits::k16:
      return write_numbers(sums, count, kMark16, reinterpret_cast<std::int16_t*>(answer));
  }
}

void read_all(const std::byte* answer, SumBits bits, float unit, float* values, std::size_t count) {
  switch (bits) {
    case SumBits::k4:
      return read_halves(reinterpret_cast<const std::uint8_t*>(answer), unit, values, count);
    case SumBits::k8:
      return read_numbers(reinterpret_cast<const std::int8_t*>(answer), kMark8, unit, values,
                          count);
    case SumBits::k16:
      return read_numbers(reinterpret_cast<const std::int16_t*>(answer), kMark16, unit, values,
                          count);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace fasthorovod::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fasthorovod::compression {
namespace {
HWY_EXPORT(write_all);
HWY_EXPORT(read_all);
}  // namespace

SumBits sum_bits(int ranks) {
  if (ranks <= 7) return SumBits::k4;
  return ranks <= 127 ? SumBits::k8 : SumBits::k16;
}

std::size_t sum_bytes(std::size_t elements, SumBits bits) {
  return (elements * static_cast<std::size_t>(bits) + 7) / 8;
}

void write_sums(std::span<const float> sums, SumBits bits, std::byte* answer) noexcept {
  HWY_DYNAMIC_DISPATCH(write_all)(sums.data(), sums.size(), bits, answer);
}

void read_sums(const std::byte* answer, SumBits bits, float unit,
               std::span<float> values) noexcept {
  HWY_DYNAMIC_DISPATCH(read_all)(answer, bits, unit, values.data(), values.size());
}

}  // namespace fasthorovod::compression
#endif  // HWY_ONCE
