// Which codec encodes the bytes of an operation on the wire, and with what parameter. What a codec
// does is compression's business; ranks must agree on the choice, so it lives here. Values are wire
// values: never renumber, only append.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fasthorovod::core {

enum class CodecId : std::uint8_t {
  kNone = 0,    // values travel as they are
  kFp16 = 1,    // IEEE half precision
  kBf16 = 2,    // bfloat16
  kTwobit = 3,  // -threshold, 0 or +threshold, what is lost is kept for the next step
};

inline constexpr CodecId kAllCodecs[] = {CodecId::kNone, CodecId::kFp16, CodecId::kBf16,
                                         CodecId::kTwobit};

/// The name users write: "none", "fp16", "bf16", "twobit".
std::string_view to_string(CodecId codec);
std::optional<CodecId> codec_id_from_wire(std::uint8_t value);

struct CodecChoice {
  CodecId id = CodecId::kNone;
  float threshold = 0.0F;  // twobit: in units of the values that are encoded; else 0

  [[nodiscard]] bool encodes() const { return id != CodecId::kNone; }

  /// The same bits: NaN is a threshold like any other here.
  friend bool operator==(const CodecChoice& a, const CodecChoice& b) {
    return a.id == b.id &&
           std::bit_cast<std::uint32_t>(a.threshold) == std::bit_cast<std::uint32_t>(b.threshold);
  }
};

/// For messages: "fp16", "twobit(threshold=0.5)".
std::string to_string(const CodecChoice& choice);

}  // namespace fasthorovod::core
