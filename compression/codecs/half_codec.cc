#include "compression/codecs/half_codec.h"

namespace fasthorovod::compression {

core::CodecId HalfCodec::id() const {
  return type_ == HalfType::kFloat16 ? core::CodecId::kFp16 : core::CodecId::kBf16;
}

std::size_t HalfCodec::code_bytes(std::size_t elements) const { return 2 * elements; }

std::size_t HalfCodec::answer_bytes(std::size_t elements, int /*ranks*/) const {
  return 2 * elements;
}

void HalfCodec::encode(std::span<float> values, std::span<std::byte> codes,
                       const CodecSetting& /*setting*/) const {
  narrow(values, 1.0F, type_, codes.data());
}

void HalfCodec::add(std::span<const std::byte> codes, std::span<float> sums) const {
  widen_and_add(codes.data(), type_, sums);
}

void HalfCodec::encode_answer(std::span<const float> sums, std::span<std::byte> answer,
                              const CodecSetting& setting) const {
  narrow(sums, static_cast<float>(setting.factor), type_, answer.data());
}

void HalfCodec::decode_answer(std::span<const std::byte> answer, std::span<float> values,
                              const CodecSetting& /*setting*/) const {
  widen(answer.data(), type_, values);
}

}  // namespace fasthorovod::compression
