#include "core/codec_choice.h"

#include <fmt/format.h>

namespace fasthorovod::core {

std::string_view to_string(CodecId codec) {
  switch (codec) {
    case CodecId::kNone:
      return "none";
    case CodecId::kFp16:
      return "fp16";
    case CodecId::kBf16:
      return "bf16";
    case CodecId::kTwobit:
      return "twobit";
  }
  return "unknown codec";
}

std::optional<CodecId> codec_id_from_wire(std::uint8_t value) {
  if (value > static_cast<std::uint8_t>(CodecId::kTwobit)) return std::nullopt;
  return static_cast<CodecId>(value);
}

std::string to_string(const CodecChoice& choice) {
  if (choice.id != CodecId::kTwobit) return std::string(to_string(choice.id));
  return fmt::format("{}(threshold={})", to_string(choice.id), choice.threshold);
}

}  // namespace fasthorovod::core
