#include "test/compression/codec_reference.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "test/compression/half.h"

namespace fasthorovod::compression {
namespace {

using core::CodecId;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float one_nan(float value) { return std::isnan(value) ? kNan : value; }

// --- fp16 and bf16 ---

template <typename H>
Bytes narrow_all(const std::vector<float>& values, float factor) {
  Bytes bytes(2 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const H half(values[i] * factor);
    std::memcpy(&bytes[2 * i], &half.bits, 2);
  }
  return bytes;
}

template <typename H>
float half_at(const Bytes& bytes, std::size_t i) {
  H half;
  std::memcpy(&half.bits, &bytes[2 * i], 2);
  return one_nan(static_cast<float>(half));
}

Bytes narrow_as(CodecId id, const std::vector<float>& values, float factor) {
  return id == CodecId::kFp16 ? narrow_all<Float16>(values, factor)
                              : narrow_all<Bfloat16>(values, factor);
}

float half_as(CodecId id, const Bytes& bytes, std::size_t i) {
  return id == CodecId::kFp16 ? half_at<Float16>(bytes, i) : half_at<Bfloat16>(bytes, i);
}

// --- twobit ---

// The masks of MXNet: which bits of a byte mean + or - in each of its four places.
constexpr int kPlus[] = {0xC0, 0x30, 0x0C, 0x03};
constexpr int kMinus[] = {0x80, 0x20, 0x08, 0x02};
constexpr int kNotFinite[] = {0x40, 0x10, 0x04, 0x01};

int take_code(float& value, std::size_t place, float threshold) {
  if (!std::isfinite(value)) return kNotFinite[place];
  if (value >= threshold) {
    value -= threshold;
    return kPlus[place];
  }
  if (value <= -threshold) {
    value += threshold;
    return kMinus[place];
  }
  return 0;
}

float meaning_of(int byte, std::size_t place) {
  const int code = byte & kPlus[place];
  if (code == kPlus[place]) return 1.0F;
  if (code == kMinus[place]) return -1.0F;
  return code == kNotFinite[place] ? kNan : 0.0F;
}

std::size_t bits_of_a_sum(int ranks) {
  std::size_t bits = 4;
  while ((1 << (bits - 1)) - 1 < ranks) bits *= 2;
  return bits;
}

}  // namespace

Bytes reference_encode(CodecId id, std::vector<float>& values, const CodecSetting& setting) {
  if (id != CodecId::kTwobit) return narrow_as(id, values, 1.0F);
  Bytes codes((values.size() + 15) / 16 * 4);
  for (std::size_t e = 0; e < values.size(); ++e) {
    codes[e / 4] |= static_cast<std::byte>(take_code(values[e], e % 4, setting.threshold));
  }
  return codes;
}

void reference_add(CodecId id, const Bytes& codes, std::vector<float>& sums) {
  for (std::size_t e = 0; e < sums.size(); ++e) {
    const float decoded = id == CodecId::kTwobit ? meaning_of(static_cast<int>(codes[e / 4]), e % 4)
                                                 : half_as(id, codes, e);
    sums[e] = one_nan(sums[e] + decoded);
  }
}

// A sum of so many bits in two's complement, the lowest bit first; so are the bits of a byte.
Bytes reference_encode_answer(CodecId id, const std::vector<float>& sums,
                              const CodecSetting& setting) {
  if (id != CodecId::kTwobit) return narrow_as(id, sums, static_cast<float>(setting.factor));
  const std::size_t bits = bits_of_a_sum(setting.ranks);
  Bytes answer((sums.size() * bits + 7) / 8);
  for (std::size_t e = 0; e < sums.size(); ++e) {
    const int least = -(1 << (bits - 1));
    const int sum = std::isfinite(sums[e]) ? static_cast<int>(sums[e]) : least;
    for (std::size_t b = 0; b < bits; ++b) {
      const std::size_t at = e * bits + b;
      if ((sum >> b) & 1) answer[at / 8] |= std::byte{1} << (at % 8);
    }
  }
  return answer;
}

std::vector<float> reference_decode_answer(CodecId id, const Bytes& answer, std::size_t elements,
                                           const CodecSetting& setting) {
  std::vector<float> values;
  const std::size_t bits = bits_of_a_sum(setting.ranks);
  const auto unit = static_cast<float>(setting.threshold * setting.factor);
  for (std::size_t e = 0; e < elements; ++e) {
    if (id != CodecId::kTwobit) {
      values.push_back(half_as(id, answer, e));
      continue;
    }
    int sum = 0;
    for (std::size_t b = 0; b < bits; ++b) {
      const std::size_t at = e * bits + b;
      const bool is_set = (answer[at / 8] & (std::byte{1} << (at % 8))) != std::byte{0};
      const int weight = 1 << b;
      if (is_set) sum += b + 1 == bits ? -weight : weight;
    }
    values.push_back(sum == -(1 << (bits - 1)) ? kNan : static_cast<float>(sum) * unit);
  }
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

namespace {

float any_value(float threshold, std::mt19937_64& random) {
  const float sign = random() % 2 == 0 ? 1.0F : -1.0F;
  const auto small = static_cast<float>(random() % 1000);
  switch (random() % 12) {
    case 0:
      return sign * 0.0F;
    case 1:
      return sign * threshold;
    case 2:
      return sign * std::nextafter(threshold, 0.0F);
    case 3:
      return sign * std::nextafter(threshold, kInfinity);
    case 4:
      return sign * std::numeric_limits<float>::denorm_min() * small;
    case 5:
      return sign * std::numeric_limits<float>::max();
    case 6:
      return sign * kInfinity;
    case 7:
    case 8:
      return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    default:
      return sign * threshold * small / 250.0F;
  }
}

}  // namespace

std::vector<float> any_values(std::size_t elements, float threshold, std::mt19937_64& random) {
  std::vector<float> values;
  for (std::size_t i = 0; i < elements; ++i) values.push_back(any_value(threshold, random));
  return values;
}

std::vector<float> any_sums(CodecId id, std::size_t elements, int ranks, std::mt19937_64& random) {
  if (id != CodecId::kTwobit) return any_values(elements, 1.0F, random);
  std::vector<float> sums;
  for (std::size_t i = 0; i < elements; ++i) {
    const auto width = static_cast<std::uint64_t>(2 * ranks + 1);
    const auto sum = static_cast<int>(random() % width) - ranks;
    const float special[] = {
        kNan, kInfinity, -kInfinity, static_cast<float>(ranks), static_cast<float>(-ranks), -0.0F};
    sums.push_back(random() % 4 == 0 ? special[random() % std::size(special)]
                                     : static_cast<float>(sum));
  }
  return sums;
}

Bytes any_bytes(std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace fasthorovod::compression
