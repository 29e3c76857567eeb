// `fp16` and `bf16`: a code is the value in the 16-bit format, rounded to nearest even; codes are
// added in float32, and the answer is their sum times the factor, rounded to that format again. NaN
// and infinity stay what they are, and what is too large becomes infinite. 2 bytes an element both
// ways.
#pragma once

#include "compression/codec.h"
#include "compression/kernels/half_kernels.h"

namespace fasthorovod::compression {

/// Immutable; any thread.
class HalfCodec final : public Codec {
 public:
  explicit HalfCodec(HalfType type) : type_(type) {}

  [[nodiscard]] core::CodecId id() const override;
  [[nodiscard]] bool keeps_residual() const override { return false; }
  [[nodiscard]] std::size_t code_bytes(std::size_t elements) const override;
  [[nodiscard]] std::size_t answer_bytes(std::size_t elements, int ranks) const override;
  void encode(std::span<float> values, std::span<std::byte> codes,
              const CodecSetting& setting) const override;
  void add(std::span<const std::byte> codes, std::span<float> sums) const override;
  void encode_answer(std::span<const float> sums, std::span<std::byte> answer,
                     const CodecSetting& setting) const override;
  void decode_answer(std::span<const std::byte> answer, std::span<float> values,
                     const CodecSetting& setting) const override;

 private:
  HalfType type_;
};

}  // namespace fasthorovod::compression
