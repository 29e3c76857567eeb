#include "tools/fasthorovod-bench/codec_pattern.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace fasthorovod::tools {
namespace {

using core::CodecId;
using core::Reduction;
using Period = std::vector<float>;

Period floats_of(const Pattern& pattern) {
  Period values(pattern.size() / sizeof(float));
  std::memcpy(values.data(), pattern.data(), pattern.size());
  return values;
}

Pattern pattern_of(const Period& values) {
  Pattern pattern(values.size() * sizeof(float));
  std::memcpy(pattern.data(), values.data(), pattern.size());
  return pattern;
}

// The integers that a rank contributes, in units of the codec.
Period units_of(const core::CodecChoice& codec, int rank) {
  Period units = floats_of(contribution(core::DataType::kFloat32, Reduction::kSum, rank));
  for (float& unit : units) unit -= codec.id == CodecId::kTwobit ? 1.0F : 0.0F;
  return units;
}

float unit_of(const core::CodecChoice& codec) {
  return codec.id == CodecId::kTwobit ? codec.threshold : 1.0F;
}

// To nearest even; the values are far from the largest.
float as_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U);
}

// How an answer brings it.
float answered(CodecId codec, float value) {
  if (codec == CodecId::kFp16) return static_cast<float>(static_cast<_Float16>(value));
  return codec == CodecId::kBf16 ? as_bfloat16(value) : value;
}

}  // namespace

Pattern coded_contribution(const core::CodecChoice& codec, int rank) {
  Period values = units_of(codec, rank);
  for (float& value : values) value *= unit_of(codec);
  return pattern_of(values);
}

Pattern coded_result(const core::CodecChoice& codec, Reduction reduction, int size) {
  Period sums(kPatternPeriod);
  for (int rank = 0; rank < size; ++rank) {
    const Period units = units_of(codec, rank);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += units[i];
  }
  const double factor = reduction == Reduction::kAverage ? 1.0 / size : 1.0;
  const auto scale = static_cast<float>(unit_of(codec) * factor);
  for (float& sum : sums) sum = answered(codec.id, sum * scale);
  return pattern_of(sums);
}

}  // namespace fasthorovod::tools
