#include "ops/how_to_add.h"

#include <optional>

#include "ops/reduce.h"

namespace fasthorovod::ops {

std::uint16_t how_to_add(core::DataType type, core::Reduction reduction) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(type) |
                                    (static_cast<unsigned>(reduction) << 8U));
}

bool add_as(std::uint16_t how, std::span<std::byte> to, std::span<const std::byte> piece) {
  const std::optional<core::DataType> type =
      core::data_type_from_wire(static_cast<std::uint8_t>(how & 0xffU));
  const std::optional<core::Reduction> reduction =
      core::reduction_from_wire(static_cast<std::uint8_t>(how >> 8U));
  if (!type || !reduction || to.size() != piece.size()) return false;
  const std::size_t element = core::size_of(*type);
  if (piece.size() % element != 0) return false;
  reduce_into(to.data(), piece.data(), piece.size() / element, *type, *reduction);
  return true;
}

}  // namespace fasthorovod::ops
