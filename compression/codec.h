// How the values of one all-reduce become fewer bytes on the wire, and sums of them become answers.
//
// An exchange has two hops. Each rank encodes its values and sends each owner the codes of the
// owner's share. The owner adds the codes of all ranks, its own among them, in the order of ranks,
// encodes the sums as the answer, and sends that to all; everybody, the owner too, decodes the same
// answer, so results are equal to the bit. An answer loses nothing that the codes still had, but
// for one rounding in codecs of 16 bits.
//
// Values are float32. A codec is stateless and immutable: it allocates nothing, starts no thread
// and knows no tensor. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/codec_choice.h"
#include "core/result.h"

namespace fasthorovod::compression {

/// What an exchange of codes is about, the same on all its ranks.
struct CodecSetting {
  float threshold = 0.0F;  // twobit: positive, in units of the values; else ignored
  int ranks = 1;           // whose codes are added
  double factor = 1.0;     // the result is the sum of all ranks' decoded values times this
};

class Codec {
 public:
  /// Spans of values start at multiples of this many elements within the values of an operation,
  /// so that codes and answers of a span begin at whole bytes. A power of two.
  static constexpr std::size_t kGranule = 64;

  virtual ~Codec() = default;

  [[nodiscard]] virtual core::CodecId id() const = 0;

  /// True: what encode() leaves in `values` must be added to the values of the next step.
  [[nodiscard]] virtual bool keeps_residual() const = 0;

  /// Bytes of the codes of so many elements, and of the answer among so many ranks.
  [[nodiscard]] virtual std::size_t code_bytes(std::size_t elements) const = 0;
  [[nodiscard]] virtual std::size_t answer_bytes(std::size_t elements, int ranks) const = 0;

  /// Encodes all values; leaves what was lost of each in its place, where the codec keeps a
  /// residual. A value that is not finite is marked as such in its code where the code has no
  /// other way to say so, and left in its place.
  virtual void encode(std::span<float> values, std::span<std::byte> codes,
                      const CodecSetting& setting) const = 0;

  /// Adds what the codes say to `sums`, in units of the codec's own (twobit: of the threshold). A
  /// value that was not finite makes its sum so.
  virtual void add(std::span<const std::byte> codes, std::span<float> sums) const = 0;

  /// The sums of all ranks' codes as an answer. A sum that is not finite stays so.
  virtual void encode_answer(std::span<const float> sums, std::span<std::byte> answer,
                             const CodecSetting& setting) const = 0;

  /// The result of the operation.
  virtual void decode_answer(std::span<const std::byte> answer, std::span<float> values,
                             const CodecSetting& setting) const = 0;
};

}  // namespace fasthorovod::compression
