#include "core/reduction.h"

namespace fasthorovod::core {

std::string_view to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
      return "average";
    case Reduction::kSum:
      return "sum";
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
    case Reduction::kProduct:
      return "product";
    case Reduction::kBitAnd:
      return "bitwise and";
    case Reduction::kBitOr:
      return "bitwise or";
    case Reduction::kBitXor:
      return "bitwise xor";
  }
  return "unknown reduction";
}

std::optional<Reduction> reduction_from_wire(std::uint8_t value) {
  switch (value) {
    case 0:
    case 1:
    case 3:  // 2 is not given out: Horovod's number for Adasum
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
      return static_cast<Reduction>(value);
    default:
      return std::nullopt;
  }
}

bool has_reduction(DataType type, Reduction reduction) {
  const bool bitwise = reduction == Reduction::kBitAnd || reduction == Reduction::kBitOr ||
                       reduction == Reduction::kBitXor;
  return !bitwise || !is_floating(type);
}

}  // namespace fasthorovod::core
