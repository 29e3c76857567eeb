#include "compression/codecs/twobit_codec.h"

#include "compression/kernels/twobit_answers.h"
#include "compression/kernels/twobit_codes.h"

namespace fasthorovod::compression {

std::size_t TwobitCodec::code_bytes(std::size_t elements) const {
  return (elements + kTwobitCodesAWord - 1) / kTwobitCodesAWord * kTwobitWordBytes;
}

std::size_t TwobitCodec::answer_bytes(std::size_t elements, int ranks) const {
  return sum_bytes(elements, sum_bits(ranks));
}

void TwobitCodec::encode(std::span<float> values, std::span<std::byte> codes,
                         const CodecSetting& setting) const {
  encode_twobit(values, setting.threshold, codes.data());
}

void TwobitCodec::add(std::span<const std::byte> codes, std::span<float> sums) const {
  add_twobit(codes.data(), sums);
}

void TwobitCodec::encode_answer(std::span<const float> sums, std::span<std::byte> answer,
                                const CodecSetting& setting) const {
  write_sums(sums, sum_bits(setting.ranks), answer.data());
}

void TwobitCodec::decode_answer(std::span<const std::byte> answer, std::span<float> values,
                                const CodecSetting& setting) const {
  const auto unit = static_cast<float>(setting.threshold * setting.factor);
  read_sums(answer.data(), sum_bits(setting.ranks), unit, values);
}

}  // namespace fasthorovod::compression
