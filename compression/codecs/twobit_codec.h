// `twobit`: a value says +threshold, -threshold or nothing, and what it does not say is its
// residual. The codes are bit for bit those of MXNet's 2-bit compression: 2 bits an element, in
// words of 32 bits. The answer holds the exact sums of the codes, so that nothing is lost on the
// way back: 4 bits an element among up to 7 ranks, 8 up to 127, 16 up to 32767.
#pragma once

#include "compression/codec.h"

namespace fasthorovod::compression {

/// Immutable; any thread.
class TwobitCodec final : public Codec {
 public:
  [[nodiscard]] core::CodecId id() const override { return core::CodecId::kTwobit; }
  [[nodiscard]] bool keeps_residual() const override { return true; }
  [[nodiscard]] std::size_t code_bytes(std::size_t elements) const override;
  [[nodiscard]] std::size_t answer_bytes(std::size_t elements, int ranks) const override;
  void encode(std::span<float> values, std::span<std::byte> codes,
              const CodecSetting& setting) const override;
  void add(std::span<const std::byte> codes, std::span<float> sums) const override;
  void encode_answer(std::span<const float> sums, std::span<std::byte> answer,
                     const CodecSetting& setting) const override;
  void decode_answer(std::span<const std::byte> answer, std::span<float> values,
                     const CodecSetting& setting) const override;
};

}  // namespace fasthorovod::compression
